-- Mark an idle session as cold, so that no writer numbers it.
-- KEYS: session, idle.
-- ARGV: its member of idle.
-- Returns the version of its grant; nothing if it is busy or gone.
local there = redis.call('HMGET', KEYS[1], 'heat', 'pending')
if not there[1] or there[2] ~= '0' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return false
end
redis.call('HSET', KEYS[1], 'cold', 1)
return there[1]
