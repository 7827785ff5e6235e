-- Delete saved states, unless they were written since or a writer has registered.
-- KEYS: clean, dirty, removed.
-- ARGV: number of the eviction, how long removals are remembered in microseconds, tenant, key prefix of
-- states, then session and version of each; no version if the state is to stay.
-- Returns how many were deleted.
-- include clock
local time, count = now(), 0
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', time - ARGV[2]))
for at = 5, #ARGV, 2 do
  local name, version = ARGV[at], ARGV[at + 1]
  local state, member = ARGV[4] .. name, ARGV[3] .. ':' .. name
  if version == '' then
    redis.call('ZADD', KEYS[1], 'XX', time, member)
  else
    local there = redis.call('HMGET', state, 'v', 'p')
    local registers = there[2] and there[2] + 0 > ARGV[1] + 0
    if there[1] == version and not registers and not redis.call('ZSCORE', KEYS[2], name) then
      redis.call('DEL', state)
      redis.call('ZREM', KEYS[1], member)
      redis.call('ZADD', KEYS[3], ARGV[1], name)
      count = count + 1
    end
  end
end
return count
