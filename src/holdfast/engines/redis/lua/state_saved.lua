-- Remove the dirty mark of states that were not written since they were read.
-- KEYS: dirty, work, log, and clean if states are evicted.
-- ARGV: tenant, key prefix of states, then session and version of each.
-- include clock
local time = now()
for at = 3, #ARGV, 2 do
  local marked = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if marked and marked + 0 <= ARGV[at + 1] + 0 then
    redis.call('ZREM', KEYS[1], ARGV[at])
    if KEYS[4] and redis.call('EXISTS', ARGV[2] .. ARGV[at]) == 1 then
      redis.call('ZADD', KEYS[4], time, ARGV[1] .. ':' .. ARGV[at])
    end
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('XLEN', KEYS[3]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
end
return false
