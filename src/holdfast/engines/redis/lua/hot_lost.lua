-- Store the gaps of a session, if the session is here.
-- KEYS: session.
-- ARGV: the gaps.
if redis.call('HEXISTS', KEYS[1], 'epoch') == 1 then
  redis.call('HSET', KEYS[1], 'lost', ARGV[1])
end
return false
