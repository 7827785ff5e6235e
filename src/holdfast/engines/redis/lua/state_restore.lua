-- Restore a state from the durable store, if there is none and it was not written since.
-- KEYS: state, versions, dirty, work, removed, clean.
-- ARGV: session, version, TTL and expiry in microseconds or '', the tenant if it must be saved again, its time
-- if later writes may be lost, the saved version, the last fallback write it includes, the last eviction that
-- the caller knows, its member of clean or '', then the pairs.
-- Returns whether there is a state now; or, with nothing written, 'removed' and the number of a later
-- eviction.
-- include clock
-- include promotion
local there = redis.call('HGET', KEYS[1], 'v')
if there and is_stale(KEYS[1]) then
  if there + 0 > ARGV[2] + 0 then
    -- Written after the save, and not lost. The old primary may still be written to: with another lineage, a
    -- save of one of the two finds out about the other.
    local lineage = math.max((redis.call('GET', KEYS[2]) or 0) + 1, now())
    redis.call('SET', KEYS[2], string.format('%.0f', lineage))
    redis.call('HSET', KEYS[1], 'l', string.format('%.0f', lineage), 'o', ARGV[7])
    mark_current(KEYS[1])
  else
    redis.call('DEL', KEYS[1])
    there = false
  end
end
if there then
  return 1
end
local removed = redis.call('ZSCORE', KEYS[5], ARGV[1])
if removed and removed + 0 > ARGV[9] + 0 then
  return 'removed ' .. string.format('%.0f', removed)
end
-- A state that is neither here nor saved has expired; so has one that would expire now.
local written = redis.call('ZSCORE', KEYS[3], ARGV[1])
local newest = ARGV[5] ~= '' and ARGV[2] - 1 or ARGV[2] + 1
if written and written + 0 >= newest or ARGV[4] ~= '' and ARGV[4] + 0 <= now() then
  return 0
end
-- Writes between the save and the loss are missing, so it gets another lineage.
local last = (redis.call('GET', KEYS[2]) or 0) + 0
local lineage = math.max(last + 1, now())
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'v', ARGV[2], 'l', string.format('%.0f', lineage), 'o', ARGV[7], 's', ARGV[8])
mark_current(KEYS[1])
for at = 11, #ARGV, 2000 do
  redis.call('HSET', KEYS[1], unpack(ARGV, at, math.min(at + 1999, #ARGV)))
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'w', ARGV[3], 'x', ARGV[4])
  expire_at(KEYS[1], ARGV[4])
end
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'b', ARGV[6])
end
if ARGV[5] ~= '' then
  redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
  redis.call('SADD', KEYS[4], ARGV[5])
elseif ARGV[10] ~= '' then
  redis.call('ZADD', KEYS[6], now(), ARGV[10])
end
redis.call('SET', KEYS[2], string.format('%.0f', math.max(lineage, ARGV[2] + 0)))
return 1
