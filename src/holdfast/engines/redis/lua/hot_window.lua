-- What is at hand of a session: KEYS session, window, late, log, and its working state if that is asked
-- for too. Epoch, number, heat, whether it is cold, the floor, its gaps, or nothing when it is unknown;
-- then the entries that are durable, and those that are not yet; then the fields of the state. ARGV: how
-- many of the newest are wanted of each, all if there is none.
local state = KEYS[5] and redis.call('HGETALL', KEYS[5]) or {}
local there = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'heat', 'cold', 'floor', 'lost')
if not there[1] then
  -- What waits of a session that is not known any more.
  return {{}, {}, redis.call('LRANGE', KEYS[3], 0, 0), state}
end
for at = 4, 6 do
  there[at] = there[at] or ''
end
local first = ARGV[1] and -ARGV[1] or 0
local late = {}
for _, head in ipairs(redis.call('LRANGE', KEYS[3], first, -1)) do
  -- What waits stands in the log alone, until it is acknowledged.
  local mark = string.match(head, '^%S+')
  local entry = redis.call('XRANGE', KEYS[4], mark, mark)[1]
  if entry and entry[2][8] then
    late[#late + 1] = head .. '\n' .. entry[2][8]
  end
end
return {there, redis.call('LRANGE', KEYS[2], first, -1), late, state}
