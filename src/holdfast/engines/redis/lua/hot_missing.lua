-- Find the turns that are no longer in the hot log.
-- KEYS: log and late of each turn.
-- ARGV: of each turn its stream id or '', its position and its name.
-- Returns their ordinals in the arguments.
local gone = {}
for at = 1, #KEYS / 2 do
  local mark, position, name = ARGV[3 * at - 2], ARGV[3 * at - 1], ARGV[3 * at]
  if mark == '' then
    for _, head in ipairs(redis.call('LRANGE', KEYS[2 * at], 0, -1)) do
      local turn, where = string.match(head, '^(%S+) (.*)$')
      mark = where == position and turn or mark
    end
  end
  local entry = mark ~= '' and redis.call('XRANGE', KEYS[2 * at - 1], mark, mark)[1]
  -- A server that lost its data may have given the same mark to another entry.
  if not entry or entry[2][2] ~= name or entry[2][4] ~= position then
    gone[#gone + 1] = at
  end
end
return gone
