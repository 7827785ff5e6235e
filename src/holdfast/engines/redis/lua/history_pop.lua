-- Remove the newest message of a transcript.
-- KEYS: index, transcript.
-- Returns the message as it was stored; nothing if there is none.
local index, transcript = KEYS[1], KEYS[2]
local newest = redis.call('XREVRANGE', transcript, '+', '-', 'COUNT', 1)[1]
if not newest then
  return false
end
redis.call('HDEL', index, 'm' .. newest[2][2])
redis.call('XDEL', transcript, newest[1])
if redis.call('XLEN', transcript) == 0 then
  redis.call('DEL', transcript)
end
return newest
