-- Raise the limit of a session's numbers, if its grant is still the same.
-- KEYS: session.
-- ARGV: version of the grant, limit, the writer that acknowledges before an entry is stored.
if redis.call('HGET', KEYS[1], 'heat') == ARGV[1] then
  local limit = redis.call('HGET', KEYS[1], 'limit')
  redis.call('HSET', KEYS[1],
    'limit', string.format('%.0f', math.max(limit + 0, ARGV[2] + 0)), 'w', ARGV[3])
end
return false
