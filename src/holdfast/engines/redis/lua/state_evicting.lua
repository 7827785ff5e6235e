-- Choose states that are saved and have been unused for a while.
-- KEYS: clean, dirty, removed.
-- ARGV: how long unused, how long to wait for a writer that registers, both in microseconds, tenant, key
-- prefix of states, then sessions.
-- From now on no writer of these states is registered. Returns the number of the eviction, then session,
-- version, lineage and base of each, and whether later writes to it may be lost.
-- include clock
local time, found = now(), {}
local number = string.format('%.0f', math.max((redis.call('ZSCORE', KEYS[3], '') or 0) + 1, time))
for at = 5, #ARGV do
  local name = ARGV[at]
  local state, member = ARGV[4] .. name, ARGV[3] .. ':' .. name
  -- In whole seconds. Nothing if the server does not keep it, as with an LFU policy.
  local idle = redis.pcall('OBJECT', 'IDLETIME', state)
  if redis.call('ZSCORE', KEYS[2], name) or redis.call('EXISTS', state) == 0 then
    redis.call('ZREM', KEYS[1], member)
  elseif type(idle) == 'number' and idle < math.floor(ARGV[1] / 1000000) then
    redis.call('ZADD', KEYS[1], time - idle * 1000000, member)
  else
    local there = redis.call('HMGET', state, 'v', 'l', 'o', 'b', 'p')
    local until_then = (there[5] or 0) + ARGV[2]
    if until_then > time then
      redis.call('ZADD', KEYS[1], until_then - ARGV[1], member)
    else
      redis.call('HSET', state, 'r', '')
      found[#found + 1] = {name, there[1] or '', there[2] or '0', there[3] or '0', there[4] and 1 or 0}
    end
  end
end
if #found > 0 then
  redis.call('ZADD', KEYS[3], number, '')
end
return {number, found}
