-- Delete states that still have a lineage, with the record of the fallback writes they include.
-- KEYS: dirty.
-- ARGV: key prefix of the shard, then session and lineage of each.
for at = 2, #ARGV, 2 do
  local state = ARGV[1] .. 'st:' .. ARGV[at]
  if redis.call('HGET', state, 'l') == ARGV[at + 1] then
    redis.call('DEL', state, ARGV[1] .. 'aside:' .. ARGV[at])
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
end
return false
