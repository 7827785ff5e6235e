-- Set the expiry of a cold session.
-- KEYS: session, window, idle.
-- ARGV: its member of idle, the version of its grant, TTL in milliseconds.
local there = redis.call('HMGET', KEYS[1], 'heat', 'cold')
if there[1] == ARGV[2] and there[2] then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
redis.call('ZREM', KEYS[3], ARGV[1])
return false
