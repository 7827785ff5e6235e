-- States that were written since they were last saved.
-- KEYS: dirty.
-- ARGV: key prefix of states, limit.
-- Returns session, version and fields of each; no fields if the state is gone, and only its session if it
-- cannot be read.
local found = {}
local marks = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1, 'WITHSCORES')
for at = 1, #marks, 2 do
  local version = string.format('%.0f', marks[at + 1])
  local fields = redis.pcall('HGETALL', ARGV[1] .. marks[at])
  found[#found + 1] = fields.err and {marks[at]} or {marks[at], version, fields}
end
return found
