-- Read a page that does not start at the oldest message.
-- KEYS: transcript.
-- ARGV: first number, offset, limit or ''.
local offset = ARGV[2] + 0
local length = redis.call('XLEN', KEYS[1])
if offset >= length then
  return {}
end
local count = length
if ARGV[3] ~= '' then
  count = math.min(length, offset + ARGV[3])
end
local found = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', count)
local page = {}
for at = offset + 1, #found do
  page[#page + 1] = found[at]
end
return page
