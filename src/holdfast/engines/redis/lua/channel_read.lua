-- Read the events after a number.
-- KEYS: events, ids, expiries, newest number.
-- ARGV: first number, limit.
-- Returns the channel's newest number, then number, id, time and text of each event.
-- include clock
-- include channel_purge
local time = now()
local limit = ARGV[2] + 0
purge(1000, time)
local found = {redis.call('HGET', KEYS[4], 'n') or '0'}
local from = ARGV[1]
local left = limit
while left > 0 do
  local entries = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', math.min(left, 500))
  for _, entry in ipairs(entries) do
    local said = entry[2]
    if said[6] + 0 > time then
      found[#found + 1] = {string.match(entry[1], '^%d+'), said[2], said[4], said[8]}
      left = left - 1
    end
  end
  if #entries == 0 then
    break
  end
  from = string.match(entries[#entries][1], '^%d+') .. '-1'
end
return found
