-- Takes over the numbers of a session, unless a newer grant is there: KEYS session, window, then where
-- each event id is remembered; ARGV epoch, number, limit, heat, gaps, floor, how long ids are known in
-- milliseconds, then place, digest and payload of each entry of the durable log. Whether it did.
local there = redis.call('HMGET', KEYS[1], 'heat', 'cold', 'acked', 'pending')
if there[1] and there[1] + 0 >= ARGV[4] + 0 then
  return 0
end
local function turn(mark)
  local number, part = string.match(mark, '^(%d+)-(%d+)')
  return number + 0, part + 0
end
local waiting = {}
local pending, acked = 0, there[3] or '0-0'
if there[1] and there[4] ~= '0' then
  -- It was hot: what is not flushed stays, behind what the durable log has.
  pending = there[4]
  local number, part = turn(acked)
  for _, value in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    local n, p = turn(value)
    if n > number or n == number and p > part then
      waiting[#waiting + 1] = value
    end
  end
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'seq', ARGV[2], 'limit', ARGV[3], 'heat', ARGV[4],
  'gaps', ARGV[5], 'floor', ARGV[6], 'acked', acked, 'pending', pending)
for at = 3, #KEYS do
  local arg = 8 + 3 * (at - 3)
  redis.call('RPUSH', KEYS[2], '0-0 ' .. ARGV[arg] .. '\n' .. ARGV[arg + 2])
  redis.call('SET', KEYS[at], ARGV[arg] .. ' ' .. ARGV[arg + 1], 'PX', ARGV[7], 'NX')
end
for _, value in ipairs(waiting) do
  redis.call('RPUSH', KEYS[2], value)
end
return 1
