-- Lets the numbers of a session go further, if the grant is the same: KEYS session; ARGV heat, limit,
-- who acknowledges before it is stored.
if redis.call('HGET', KEYS[1], 'heat') == ARGV[1] then
  local limit = redis.call('HGET', KEYS[1], 'limit')
  redis.call('HSET', KEYS[1],
    'limit', string.format('%.0f', math.max(limit + 0, ARGV[2] + 0)), 'w', ARGV[3])
end
return false
