-- Drops claimed entries and lets their event ids be forgotten later: KEYS log; ARGV prefix of the
-- keys of event ids, how long they are known in milliseconds, then ids of entries. How many.
local log, count = KEYS[1], 0
if redis.call('EXISTS', log) == 0 then
  return 0
end
for at = 3, #ARGV do
  if redis.call('XACK', log, 'holdfast', ARGV[at]) == 1 then
    local said = redis.call('XRANGE', log, ARGV[at], ARGV[at])[1][2]
    redis.call('PEXPIRE', ARGV[1] .. said[2], ARGV[2])
    redis.call('XDEL', log, ARGV[at])
    count = count + 1
  end
end
return count
