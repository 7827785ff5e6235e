-- Delete a state that still has a version; 0 means that there is none.
-- KEYS: state, removed.
-- ARGV: version, session, how long removals are remembered in microseconds.
-- Returns whether it was deleted.
-- include clock
-- include promotion
local there = not is_stale(KEYS[1]) and redis.call('HGET', KEYS[1], 'v') or '0'
if there ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
-- A process that read it from the durable store before the clear must not restore it.
local time = now()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', time - ARGV[3]))
redis.call('ZADD', KEYS[2], string.format('%.0f', time), ARGV[2])
return 1
