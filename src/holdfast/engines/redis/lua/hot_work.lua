-- What there is to do in a shard.
-- KEYS: work, idle, clean.
-- ARGV: how long a session must have been idle, and how long a state must have been unused or '', in
-- microseconds.
-- Returns tenants with something to flush, sessions to unload, and states that may be evicted.
-- include clock
local time = now()
local function before(key, span)
  local until_then = string.format('%.0f', time - span)
  return redis.call('ZRANGEBYSCORE', key, '-inf', until_then, 'LIMIT', 0, 200)
end
return {
  redis.call('SMEMBERS', KEYS[1]),
  before(KEYS[2], ARGV[1]),
  ARGV[2] ~= '' and before(KEYS[3], ARGV[2]) or {},
}
