-- Brings a state back if there is none, and it was not written since: KEYS state, versions, dirty; ARGV
-- session, version, window and expiry in microseconds or nothing, then the pairs. Whether there is a
-- state now.
-- include clock
if redis.call('HEXISTS', KEYS[1], 'v') == 1 then
  return 1
end
local written = redis.call('ZSCORE', KEYS[3], ARGV[1])
if written and written + 0 > ARGV[2] + 0 then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'v', ARGV[2])
for at = 5, #ARGV, 2000 do
  redis.call('HSET', KEYS[1], unpack(ARGV, at, math.min(at + 1999, #ARGV)))
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'w', ARGV[3], 'x', ARGV[4])
  expire_at(KEYS[1], ARGV[4])
end
local last = redis.call('GET', KEYS[2]) or 0
redis.call('SET', KEYS[2], string.format('%.0f', math.max(last + 0, ARGV[2] + 0)))
return 1
