-- How far the consolidators of a shard are behind.
-- KEYS: work, quarantined values.
-- ARGV: key prefix of the shard.
-- Returns how many turns wait, the age of the oldest in milliseconds, how many values are in quarantine,
-- then each tenant with the bytes that its turns take.
local count, age, bytes = 0, 0, {}
local time = redis.call('TIME')
for _, tenant in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local log = ARGV[1] .. tenant .. ':hot'
  local length = redis.pcall('XLEN', log)
  if type(length) == 'number' and length > 0 then
    count = count + length
    local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1][1]
    age = math.max(age, time[1] * 1000 + math.floor(time[2] / 1000) - string.match(first, '^%d+'))
    local used = redis.pcall('MEMORY', 'USAGE', log)
    bytes[#bytes + 1] = tenant
    bytes[#bytes + 1] = type(used) == 'number' and used or 0
  end
end
local moved = redis.pcall('ZCARD', KEYS[2])
return {count, age, type(moved) == 'number' and moved or 0, bytes}
