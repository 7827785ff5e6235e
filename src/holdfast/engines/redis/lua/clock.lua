-- The server's time in microseconds, and a function that sets the expiry of a key to such a time.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function expire_at(key, at)
  redis.call('PEXPIREAT', key, math.ceil(at / 1000))
end
