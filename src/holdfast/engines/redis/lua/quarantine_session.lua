-- Repair a session after its window, or its list of unflushed turns, was moved to quarantine.
-- KEYS: log, session, late.
-- ARGV: name of the session, whether to rebuild the list of unflushed turns from the log.
-- The window then begins after the last number, so that older entries are read from the durable log.
if ARGV[2] == '1' and redis.call('TYPE', KEYS[1]).ok == 'stream' then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
    local name, position = entry[2][2], entry[2][4]
    if name and position and string.match(name, '^[^:]*') == ARGV[1] then
      redis.call('RPUSH', KEYS[3], entry[1] .. ' ' .. position)
    end
  end
end
if redis.call('TYPE', KEYS[2]).ok == 'hash' then
  local there = redis.call('HMGET', KEYS[2], 'epoch', 'seq')
  if there[1] and there[2] then
    redis.call('HSET', KEYS[2], 'floor', there[1] .. ' ' .. there[2])
  end
end
return false
