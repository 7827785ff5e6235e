-- Removes a state that is still at a version, 0 being none: KEYS state; ARGV version. Whether it was.
local there = redis.call('HGET', KEYS[1], 'v') or '0'
if there ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
