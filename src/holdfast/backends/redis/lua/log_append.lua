-- Appends entries of one session: KEYS log, meta, tenants, then where each event id is remembered;
-- ARGV tenant, then name, digest and payload of each. The epoch and the number of each entry in one
-- text, or the place in the batch of the id that is another event's.
-- include clock
local log, meta = KEYS[1], KEYS[2]
local places, fresh = {}, {}
for i = 1, #KEYS - 3 do
  local seen = redis.call('GET', KEYS[i + 3])
  if seen then
    local place, digest = string.match(seen, '^(%d+ %d+) (%x+)$')
    if digest ~= ARGV[3 * i] then
      return i
    end
    places[i] = place
  else
    fresh[#fresh + 1] = i
  end
end
if #fresh > 0 then
  local epoch = redis.call('HGET', meta, 'epoch') or '1'
  local number = now()
  for at, i in ipairs(fresh) do
    local seq = redis.call('HINCRBY', meta, 'seq', 1)
    if seq == 1 then
      redis.call('SADD', KEYS[3], ARGV[1])
    end
    -- From there on a Lua number is not exact, and the text is.
    seq = seq < 9007199254740992 and string.format('%.0f', seq) or redis.call('HGET', meta, 'seq')
    local place, name, payload = epoch .. ' ' .. seq, ARGV[3 * i - 1], ARGV[3 * i + 1]
    local id = string.format('%.0f-%d', number, at - 1)
    local added = redis.pcall('XADD', log, id, 'k', name, 'n', place, 'p', payload)
    if type(added) == 'table' then
      -- The clock went back or stood still: go on after the newest entry.
      local about = redis.call('XINFO', 'STREAM', log)
      for field = 1, #about, 2 do
        if about[field] == 'last-generated-id' then
          number = string.match(about[field + 1], '^%d+') + 1
        end
      end
      id = string.format('%.0f-%d', number, at - 1)
      redis.call('XADD', log, id, 'k', name, 'n', place, 'p', payload)
    end
    redis.call('SET', KEYS[i + 3], place .. ' ' .. ARGV[3 * i])
    places[i] = place
  end
end
return table.concat(places, ' ')
