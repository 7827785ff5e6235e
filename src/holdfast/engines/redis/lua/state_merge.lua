-- Apply a fallback write to a state, once.
-- KEYS: state, versions, dirty, work, the last fallback write that was applied.
-- ARGV: its number, whether it replaced the state, whether it removed the state before, whether it removes it
-- now, TTL in microseconds or '', session, tenant, number of pairs, the saved version that an absent state
-- begins from or '', the pairs, the fields to delete.
-- Returns version and lineage of the state that has it; 0 and 0 if it was applied before and there is no state
-- now; or, with nothing written, 'absent'.
-- include clock
-- include promotion
local state, last = KEYS[1], 9 + 2 * ARGV[8]
local done = redis.call('GET', KEYS[5])
if done and done + 0 >= ARGV[1] + 0 then
  local there = redis.call('HMGET', state, 'v', 'l')
  return {there[1] or '0', there[2] or '0'}
end
local stale = is_stale(state)
if ARGV[9] == '' and (stale or redis.call('HEXISTS', state, 'v') == 0) then
  return 'absent'
end
if stale then
  redis.call('DEL', state)
end
redis.call('SET', KEYS[5], ARGV[1], 'EX', 86400)
local window = ARGV[5] ~= '' and ARGV[5] or ARGV[3] == '0' and redis.call('HGET', state, 'w')
local before = redis.call('HMGET', state, 'v', 'l', 'r', 'o')
if ARGV[2] == '1' or ARGV[3] == '1' then
  redis.call('DEL', state)
end
local version = math.max((redis.call('GET', KEYS[2]) or 0) + 1, now())
version = string.format('%.0f', version)
redis.call('SET', KEYS[2], version)
if ARGV[4] == '0' then
  redis.call('HSET', state, 'v', version, 'l', before[2] or before[1] and '0' or version,
    'o', before[1] and (before[4] or '0') or ARGV[9], 'r', before[3] or '', 's', ARGV[1])
  mark_current(state)
  for at = 10, last, 2000 do
    redis.call('HSET', state, unpack(ARGV, at, math.min(at + 1999, last)))
  end
  for at = last + 1, #ARGV do
    redis.call('HDEL', state, ARGV[at])
  end
  if window then
    local expires = now() + window
    redis.call('HSET', state, 'w', window, 'x', string.format('%.0f', expires))
    expire_at(state, expires)
  end
end
redis.call('ZADD', KEYS[3], version, ARGV[6])
redis.call('SADD', KEYS[4], ARGV[7])
return {version, before[2] or before[1] and '0' or version}
