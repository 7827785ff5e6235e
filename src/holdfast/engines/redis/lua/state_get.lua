-- Read a state, or some fields of it.
-- KEYS: state.
-- ARGV: fields, or none for all.
-- Returns what HMGET or HGETALL does; as of no state if it is stale.
-- include promotion
local stale = is_stale(KEYS[1])
if #ARGV == 0 then
  return stale and {} or redis.call('HGETALL', KEYS[1])
end
local found = {}
for at = 1, #ARGV do
  found[at] = not stale and redis.call('HGET', KEYS[1], ARGV[at])
end
return found
