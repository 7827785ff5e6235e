-- Claim the oldest turns of a shard, also those that another consumer has.
-- KEYS: log.
-- ARGV: consumer, limit, number of deliveries from which a turn is suspect, number of bytes to stop at.
-- A suspect turn is returned alone. Returns of each turn its stream id, its fields and its deliveries.
local log, group, consumer = KEYS[1], 'holdfast', ARGV[1]
local limit, suspect, enough = ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
if redis.call('EXISTS', log) == 0 then
  return {}
end
local left = redis.pcall('XPENDING', log, group, '-', '+', limit)
if left.err then
  redis.call('XGROUP', 'CREATE', log, group, '0')
  left = {}
end
local ids, times = {}, {}
for at, one in ipairs(left) do
  if one[4] >= suspect then
    if at == 1 then
      ids[1], times[one[1]] = one[1], one[4] + 1
    end
    limit = 0
    break
  end
  ids[at], times[one[1]] = one[1], one[4] + 1
end
local claimed, bytes = {}, 0
local function take(entries)
  for _, entry in ipairs(entries) do
    if entry[2] then
      claimed[#claimed + 1] = {entry[1], entry[2], times[entry[1]] or 1}
      for _, field in ipairs(entry[2]) do
        bytes = bytes + #field
      end
    end
  end
end
for at = 1, #ids, 50 do
  if bytes < enough then
    take(redis.call('XCLAIM', log, group, consumer, 0, unpack(ids, at, math.min(at + 49, #ids))))
  else
    limit = 0
  end
end
while #claimed < limit and bytes < enough do
  local read = redis.call('XREADGROUP', 'GROUP', group, consumer,
    'COUNT', math.min(50, limit - #claimed), 'STREAMS', log, '>')
  if not read then
    break
  end
  take(read[1][2])
end
return claimed
