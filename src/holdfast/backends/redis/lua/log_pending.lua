-- How far the consumers are behind: KEYS the logs. Unclaimed, claimed, age of the oldest entry in
-- microseconds.
-- include clock
local unclaimed, claimed, age = 0, 0, 0
local time = now()
for _, log in ipairs(KEYS) do
  local length = redis.call('XLEN', log)
  if length > 0 then
    local waiting = redis.pcall('XPENDING', log, 'holdfast')
    local held = waiting.err and 0 or waiting[1]
    unclaimed = unclaimed + length - held
    claimed = claimed + held
    local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1][1]
    age = math.max(age, time - string.match(first, '^%d+'))
  end
end
return {unclaimed, claimed, age}
