-- Move a damaged value out of the way.
-- KEYS: its key, its new key, the set of moved values.
-- ARGV: how many seconds it is kept, how many values of the shard are kept.
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
  if redis.call('TYPE', KEYS[3]).ok ~= 'zset' then
    redis.call('DEL', KEYS[3])
  end
  redis.call('ZADD', KEYS[3], redis.call('TIME')[1], KEYS[2])
  redis.call('EXPIRE', KEYS[3], ARGV[1])
  for _, key in ipairs(redis.call('ZRANGE', KEYS[3], 0, -ARGV[2] - 1)) do
    redis.call('DEL', key)
    redis.call('ZREM', KEYS[3], key)
  end
end
return false
