-- The window of a session.
-- KEYS: session, window, late, log, and its working state if that is wanted too.
-- ARGV: how many of the newest entries, or none for all.
-- Returns epoch, number, version of the grant (0 if it is another server's), whether it is cold or stale, the floor
-- and its gaps, or nothing if the session is not here; then the flushed entries and the unflushed ones; then the fields of the state.
-- include promotion
local state = KEYS[5] and not is_stale(KEYS[5]) and redis.call('HGETALL', KEYS[5]) or {}
local there = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'heat', 'cold', 'floor', 'lost')
if not there[1] then
  -- Unflushed turns of a session that is no longer here.
  return {{}, {}, redis.call('LRANGE', KEYS[3], 0, 0), state}
end
if is_stale(KEYS[1]) then
  -- The grant is another server's, which may still use it.
  there[3], there[4] = '0', '1'
end
for at = 4, 6 do
  there[at] = there[at] or ''
end
local first = ARGV[1] and -ARGV[1] or 0
local late = {}
for _, head in ipairs(redis.call('LRANGE', KEYS[3], first, -1)) do
  -- Unflushed turns are only in the log, until they are acknowledged.
  local mark = string.match(head, '^%S+')
  local entry = redis.call('XRANGE', KEYS[4], mark, mark)[1]
  if entry and entry[2][8] then
    late[#late + 1] = head .. '\n' .. entry[2][8]
  end
end
return {there, redis.call('LRANGE', KEYS[2], first, -1), late, state}
