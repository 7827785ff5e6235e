-- Load a session under a grant, unless a newer grant is there.
-- KEYS: session, window, late, idle, then the key that remembers each event id.
-- ARGV: epoch, number, limit, version of the grant, gaps, floor, how long event ids are remembered in
-- milliseconds, its member of idle, then position, digest with time, and payload of each entry of the
-- durable log.
-- Returns whether it did.
-- include clock
-- include promotion
local there = redis.call('HMGET', KEYS[1], 'heat', 'cold', 'pending', 'epoch', 'seq')
if there[1] and there[1] + 0 >= ARGV[4] + 0 then
  return 0
end
local seq = ARGV[2]
if there[4] == ARGV[1] and there[5] + 0 > seq + 0 then
  -- It was written to while the grant was on its way.
  seq = there[5]
end
local known = {}
for arg = 9, #ARGV, 3 do
  known[ARGV[arg]] = true
end
local function unknown(key, pattern)
  local found = {}
  for _, value in ipairs(redis.call('LRANGE', key, 0, -1)) do
    if not known[string.match(value, pattern)] then
      found[#found + 1] = value
    end
  end
  return found
end
local pending, others, late = 0, {}, {}
if there[1] and not there[2] then
  -- It was loaded: keep what the durable log did not have when it was read.
  pending = there[3]
  others, late = unknown(KEYS[2], '^%S+ (%d+ %d+)\n'), unknown(KEYS[3], '^%S+ (%d+ %d+)$')
end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'seq', seq, 'limit', ARGV[3], 'heat', ARGV[4],
  'lost', ARGV[5], 'floor', ARGV[6], 'pending', pending)
mark_current(KEYS[1])
-- A session that is only read is unloaded like one that was flushed.
if pending + 0 == 0 then
  redis.call('ZADD', KEYS[4], now(), ARGV[8])
end
for at = 5, #KEYS do
  local arg = 9 + 3 * (at - 5)
  redis.call('RPUSH', KEYS[2], '0-0 ' .. ARGV[arg] .. '\n' .. ARGV[arg + 2])
  redis.call('SET', KEYS[at], ARGV[arg] .. ' ' .. ARGV[arg + 1], 'PX', ARGV[7], 'NX')
end
for _, value in ipairs(others) do
  redis.call('RPUSH', KEYS[2], value)
end
for _, head in ipairs(late) do
  redis.call('RPUSH', KEYS[3], head)
end
return 1
