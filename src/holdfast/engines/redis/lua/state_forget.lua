-- Removes a state that is still at a version, 0 being none: KEYS state, removed; ARGV version, session,
-- for how long removals are known in microseconds. Whether it was.
-- include clock
local there = redis.call('HGET', KEYS[1], 'v') or '0'
if there ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
-- Whoever has read it from the durable store before it was cleared there must not bring it back.
local time = now()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', time - ARGV[3]))
redis.call('ZADD', KEYS[2], string.format('%.0f', time), ARGV[2])
return 1
