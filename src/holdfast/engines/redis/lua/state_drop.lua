-- Removes states that are still of a lineage, and which writes from elsewhere they have: KEYS dirty; ARGV
-- beginning of the shard's keys, then session and lineage of each.
for at = 2, #ARGV, 2 do
  local state = ARGV[1] .. 'st:' .. ARGV[at]
  if redis.call('HGET', state, 'l') == ARGV[at + 1] then
    redis.call('DEL', state, ARGV[1] .. 'aside:' .. ARGV[at])
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
end
return false
