-- Takes marks off states that were not written since: KEYS dirty, work, log; ARGV tenant, then session
-- and version of each.
for at = 2, #ARGV, 2 do
  local marked = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if marked and marked + 0 <= ARGV[at + 1] + 0 then
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('XLEN', KEYS[3]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
end
return false
