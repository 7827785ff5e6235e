-- Takes over the numbers of a session, unless a newer grant is there: KEYS session, window, then where
-- each event id is remembered; ARGV epoch, number, limit, heat, gaps, floor, how long ids are known in
-- milliseconds, then place, digest and payload of each entry of the durable log. Whether it did.
local there = redis.call('HMGET', KEYS[1], 'heat', 'cold', 'acked', 'pending', 'epoch', 'seq')
if there[1] and there[1] + 0 >= ARGV[4] + 0 then
  return 0
end
local seq = ARGV[2]
if there[5] == ARGV[1] and there[6] + 0 > seq + 0 then
  -- It went on while the grant was on its way.
  seq = there[6]
end
local known, others = {}, {}
for arg = 8, #ARGV, 3 do
  known[ARGV[arg]] = true
end
local pending, acked = 0, there[3] or '0-0'
if there[1] and not there[2] then
  -- It was hot: what the durable log did not have when it was asked stays at hand.
  pending = there[4]
  for _, value in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if not known[string.match(value, '^%S+ (%d+ %d+)\n')] then
      others[#others + 1] = value
    end
  end
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'seq', seq, 'limit', ARGV[3], 'heat', ARGV[4],
  'gaps', ARGV[5], 'floor', ARGV[6], 'acked', acked, 'pending', pending)
for at = 3, #KEYS do
  local arg = 8 + 3 * (at - 3)
  redis.call('RPUSH', KEYS[2], '0-0 ' .. ARGV[arg] .. '\n' .. ARGV[arg + 2])
  redis.call('SET', KEYS[at], ARGV[arg] .. ' ' .. ARGV[arg + 1], 'PX', ARGV[7], 'NX')
end
for _, value in ipairs(others) do
  redis.call('RPUSH', KEYS[2], value)
end
return 1
