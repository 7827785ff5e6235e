-- Publish an event.
-- KEYS: events, ids, expiries, newest number.
-- ARGV: id, event, retention in microseconds.
-- Returns its number and its time; nothing if the id belongs to another event.
-- include clock
-- include channel_purge
local time = now()
purge(100, time)
local number = redis.call('HGET', KEYS[2], ARGV[1])
if number then
  local said = redis.call('XRANGE', KEYS[1], number, number)[1][2]
  if said[6] + 0 > time then
    if said[8] ~= ARGV[2] then
      return false
    end
    return {number, said[4]}
  end
end
local newest = redis.call('HMGET', KEYS[4], 'n', 'x')
-- Above the clock too: a server that lost its data never reuses a number.
local following = math.max((newest[1] or 0) + 1, time)
number = string.format('%.0f', following)
local expires = time + ARGV[3]
redis.call('XADD', KEYS[1], number .. '-0', 'i', ARGV[1], 'p', time, 'x', expires, 'e', ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], number)
redis.call('ZADD', KEYS[3], expires, number .. ' ' .. ARGV[1])
local longest = math.max((newest[2] or 0) + 0, expires)
redis.call('HSET', KEYS[4], 'n', number, 'x', longest)
for at = 1, 3 do
  expire_at(KEYS[at], longest)
end
-- Wake the subscribers. Without the right to publish they find the event when they poll.
redis.pcall('PUBLISH', KEYS[1], number)
return {number, string.format('%.0f', time)}
