-- Delete expired events, a bounded number per call, oldest expiry first.
local function purge(most, at)
  local over = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', at, 'LIMIT', 0, most)
  for _, member in ipairs(over) do
    local number, id = string.match(member, '^(%d+) (.*)$')
    redis.call('XDEL', KEYS[1], number)
    if redis.call('HGET', KEYS[2], id) == number then
      redis.call('HDEL', KEYS[2], id)
    end
    redis.call('ZREM', KEYS[3], member)
  end
end
