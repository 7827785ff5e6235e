-- Read the states of some sessions.
-- KEYS: dirty.
-- ARGV: key prefix of states, then sessions.
-- Returns session, the version at which it was last marked dirty or 0, and the fields of each.
local found = {}
for at = 2, #ARGV do
  local mark = redis.call('ZSCORE', KEYS[1], ARGV[at]) or 0
  local fields = redis.call('HGETALL', ARGV[1] .. ARGV[at])
  found[#found + 1] = {ARGV[at], string.format('%.0f', mark), fields}
end
return found
