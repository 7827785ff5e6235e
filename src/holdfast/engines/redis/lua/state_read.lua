-- States of some sessions as they are: KEYS dirty; ARGV beginning of the keys of states, then sessions.
-- Session, the version at which it was last marked or 0, and the fields of each.
local found = {}
for at = 2, #ARGV do
  local mark = redis.call('ZSCORE', KEYS[1], ARGV[at]) or 0
  local fields = redis.call('HGETALL', ARGV[1] .. ARGV[at])
  found[#found + 1] = {ARGV[at], string.format('%.0f', mark), fields}
end
return found
