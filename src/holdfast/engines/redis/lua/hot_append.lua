-- Append entries to the hot log, all or none.
-- KEYS: log, session, late and work of each session, then the key that remembers each event id.
-- ARGV: tenant, soft and hard limit of the log's length, number of sessions, the writer that acknowledges
-- before the entry is stored or '', the digests of an earlier version of all entries or '', number of
-- entries of each session, then name, agent, digest with time, and payload of each entry.
-- Returns 'OK', whether the soft limit is exceeded, the positions of all entries and their stream ids; an
-- entry that was there already has '-' and its time instead of a stream id. With nothing written it returns
-- 'OLDER' (send the digests of an earlier version), 'OTHER' and the entry whose id has another body, 'COLD',
-- 'LIMIT' or 'FULL' and the session.
-- include promotion
local sessions = ARGV[4] + 0
local soft, hard = ARGV[2] + 0, ARGV[3] + 0
local first_key, first_arg, writer, older = 4 * sessions, 6 + sessions, ARGV[5], ARGV[6]
-- An entry whose writer waits until it is stored has its position in the field 'c', others in 'n'.
local field = writer == '' and 'c' or 'n'
local positions, marks, todo, crowded, event = {}, {}, {}, 0, 0
for at = 1, #KEYS - first_key do
  local seen = redis.call('GET', KEYS[first_key + at])
  if seen then
    local position, digest, time = string.match(seen, '^(%d+ %d+) (%x+) ?(%S*)$')
    -- A damaged value counts as absent and is written again.
    if position then
      local ours, now = string.match(ARGV[first_arg + 4 * at - 1], '^(%x+) (%S+)$')
      if time == '' then
        -- An earlier version wrote it: the time is in the digest.
        if older == '' then
          return {'OLDER'}
        end
        ours, time = string.sub(older, 32 * at - 31, 32 * at), now
      end
      if digest ~= ours then
        return {'OTHER', at}
      end
      positions[at], marks[at] = position, '-' .. time
    end
  end
end
for s = 1, sessions do
  local there = redis.call('HMGET', KEYS[4 * s - 2], 'epoch', 'seq', 'limit', 'pending', 'heat', 'cold', 'w')
  if not there[1] or there[6] or is_stale(KEYS[4 * s - 2]) then
    return {'COLD', s}
  end
  local fresh = {}
  for _ = 1, ARGV[6 + s] do
    event = event + 1
    if not positions[event] then
      fresh[#fresh + 1] = event
    end
  end
  if #fresh > 0 then
    local writers = there[7] or ''
    local known = writer == '' or writers == '*' or string.find(writers, writer, 1, true)
    -- A writer is registered before its first acknowledgement, so that a loss is noticed.
    if there[2] + #fresh > there[3] + 0 or not known then
      return {'LIMIT', s, there[5], there[1]}
    end
    local length = redis.call('XLEN', KEYS[4 * s - 3])
    if length >= hard then
      return {'FULL', s}
    elseif length >= soft then
      crowded = 1
    end
  end
  todo[s] = {there, fresh}
end
for s = 1, sessions do
  local there, fresh = todo[s][1], todo[s][2]
  if #fresh > 0 then
    local seq = there[2] + 0
    for _, at in ipairs(fresh) do
      seq = seq + 1
      local arg = first_arg + 4 * at - 3
      local position = string.format('%s %.0f', there[1], seq)
      local mark = redis.call('XADD', KEYS[4 * s - 3], '*',
        'k', ARGV[arg], field, position, 'a', ARGV[arg + 1], 'p', ARGV[arg + 3])
      redis.call('RPUSH', KEYS[4 * s - 1], mark .. ' ' .. position)
      redis.call('SET', KEYS[first_key + at], position .. ' ' .. ARGV[arg + 2])
      positions[at], marks[at] = position, mark
    end
    redis.call('HSET', KEYS[4 * s - 2],
      'seq', string.format('%.0f', seq), 'pending', there[4] + #fresh)
    if there[4] == '0' then
      redis.call('SADD', KEYS[4 * s], ARGV[1])
    end
  end
end
return {'OK', crowded, table.concat(positions, ' '), table.concat(marks, ' ')}
