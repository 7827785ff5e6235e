-- Write a state.
-- KEYS: state, versions, and with snapshots dirty, work and removed.
-- ARGV: mode, expected version, TTL in microseconds, number of pairs, the pairs, the fields to delete; with
-- snapshots, at the end, the saved version that an absent state begins from or '', the writer that
-- acknowledges before the state is saved or '', the number under which it registered or '', session, tenant.
-- Returns the new version and the lineage of the state; or, with nothing written, the current version,
-- 'absent', or 'unregistered' and the number to register with.
-- include clock
-- include promotion
local state, snapshots = KEYS[1], #KEYS == 5
local count = #ARGV
if snapshots then
  count = count - 5
end
local before = redis.call('HMGET', state, 'v', 'l', 'r', 'o', 's', 'w', 'b')
local stale = snapshots and before[1] and is_stale(state)
if stale then
  before = {}
end
if snapshots and not before[1] and ARGV[count + 1] == '' then
  return 'absent'
end
local writers, writer = before[3] or '', snapshots and ARGV[count + 2] or ''
if writer ~= '' then
  if not string.find(writers, writer, 1, true) then
    -- An eviction that began after the registration may have deleted it.
    local last = redis.call('ZSCORE', KEYS[5], '')
    if not last then
      last = now()
      redis.call('ZADD', KEYS[5], string.format('%.0f', last), '')
    end
    last = string.format('%.0f', last)
    if ARGV[count + 3] ~= last then
      if before[1] then
        -- A writer has registered: evicting it now would look like a loss.
        redis.call('HSET', state, 'p', string.format('%.0f', now()))
      end
      return 'unregistered ' .. last
    end
    writers = #writers < 1000 and writers .. ' ' .. writer or writer
  end
end
if ARGV[2] ~= '' then
  local there = before[1] or '0'
  if there ~= ARGV[2] then
    return there
  end
end
local window = ARGV[3] ~= '' and ARGV[3] or before[6]
local version
if snapshots then
  -- Above the clock: a server that lost some data never reuses a version of a snapshot.
  version = math.max((redis.call('GET', KEYS[2]) or 0) + 1, now())
  redis.call('SET', KEYS[2], string.format('%.0f', version))
else
  version = redis.call('INCR', KEYS[2])
  if version == 1 then
    -- A server that lost all data continues at the clock.
    version = now()
    redis.call('SET', KEYS[2], string.format('%.0f', version))
  end
end
version = string.format('%.0f', version)
-- A new state begins a lineage; one from before lineages has the first.
local lineage, base = before[2] or before[1] and '0' or version, ARGV[count + 1]
if before[1] then
  base = before[4] or '0'
end
if ARGV[1] == 'set' or stale then
  redis.call('DEL', state)
end
local last = 4 + 2 * ARGV[4]
if snapshots and (ARGV[1] == 'set' or not before[2] or writers ~= before[3]) then
  redis.call('HSET', state, 'l', lineage, 'o', base, 'r', writers, 's', before[5] or 0)
  redis.call('HDEL', state, 'p')
end
if last <= 2004 then
  redis.call('HSET', state, 'v', version, unpack(ARGV, 5, last))
else
  redis.call('HSET', state, 'v', version)
  for at = 5, last, 2000 do
    redis.call('HSET', state, unpack(ARGV, at, math.min(at + 1999, last)))
  end
end
for at = last + 1, count do
  redis.call('HDEL', state, ARGV[at])
end
if window then
  local expires = now() + window
  redis.call('HSET', state, 'w', window, 'x', expires)
  expire_at(state, expires)
end
if snapshots then
  mark_current(state)
  if before[7] and ARGV[1] ~= 'set' then
    redis.call('HDEL', state, 'b')
  end
  redis.call('ZADD', KEYS[3], version, ARGV[count + 4])
  redis.call('SADD', KEYS[4], ARGV[count + 5])
end
return {version, lineage}
