-- What there is to do in a shard: KEYS work, idle; ARGV how long a session must have rested in
-- microseconds. Tenants with something to flush, and sessions to cool.
-- include clock
local until_then = string.format('%.0f', now() - ARGV[1])
return {
  redis.call('SMEMBERS', KEYS[1]),
  redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', until_then, 'LIMIT', 0, 200),
}
