-- Release the lock of a session.
-- KEYS: the lock.
-- ARGV: the token of its holder.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return false
