-- Append one entry to the hot log in the usual case: it is new, and there is room.
-- KEYS: log, session, late, work, the key that remembers its event id.
-- ARGV: tenant, soft limit of the log's length, name, agent, digest with time, payload, the writer that
-- acknowledges before the entry is stored or ''.
-- An entry whose writer waits until it is stored has its position in the field 'c', others in 'n'.
-- Returns its stream id and position; nothing, with nothing written, in all other cases: call hot_append.
-- include promotion
local log, session = KEYS[1], KEYS[2]
local there = redis.call('HMGET', session, 'epoch', 'seq', 'limit', 'pending', 'cold', 'w')
if not there[1] or there[5] or is_stale(session) then
  return false
end
if ARGV[7] ~= '' and there[6] ~= ARGV[7] then
  local writers = there[6] or ''
  if writers ~= '*' and not string.find(writers, ARGV[7], 1, true) then
    return false
  end
end
local seq = there[2] + 1
if seq > there[3] + 0 or redis.call('XLEN', log) >= ARGV[2] + 0 then
  return false
end
seq = string.format('%.0f', seq)
local position = there[1] .. ' ' .. seq
if redis.call('SETNX', KEYS[5], position .. ' ' .. ARGV[5]) == 0 then
  return false
end
local mark = redis.call('XADD', log, '*',
  'k', ARGV[3], ARGV[7] == '' and 'c' or 'n', position, 'a', ARGV[4], 'p', ARGV[6])
local head = mark .. ' ' .. position
redis.call('RPUSH', KEYS[3], head)
redis.call('HSET', session, 'seq', seq, 'pending', there[4] + 1)
if there[4] == '0' then
  redis.call('SADD', KEYS[4], ARGV[1])
end
return head
