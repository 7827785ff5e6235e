-- What is at hand of a session: KEYS session, window. Epoch, number, heat, whether it is cold, the
-- floor, the last acknowledged turn, its gaps, then the entries; nothing when it is unknown.
local there = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'heat', 'cold', 'floor', 'acked', 'gaps')
if not there[1] then
  return false
end
for at = 4, 7 do
  there[at] = there[at] or ''
end
return {there, redis.call('LRANGE', KEYS[2], 0, -1)}
