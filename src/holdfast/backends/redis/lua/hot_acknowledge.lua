-- Drops turns that are durable: KEYS log, work, idle, dirty; ARGV tenant, beginning of the shard's
-- keys, bound of a window, how long ids are known in milliseconds, then of each turn its mark, session,
-- event, and whether it was stored (1), is not to be read (0), or may come back at its place (2).
-- include clock
local log, prefix, bound = KEYS[1], ARGV[2], ARGV[3] + 0
local function turn(mark)
  local number, part = string.match(mark, '^(%d+)-(%d+)')
  return number + 0, part + 0
end
local function above(one, other)
  local epoch, seq = string.match(one, '^(%d+) (%d+)$')
  local epoch2, seq2 = string.match(other, '^(%d+) (%d+)$')
  epoch, epoch2 = epoch + 0, epoch2 + 0
  return epoch > epoch2 or epoch == epoch2 and seq + 0 > seq2 + 0
end
local sessions, order = {}, {}
for at = 5, #ARGV, 4 do
  local mark, name, how = ARGV[at], ARGV[at + 1], ARGV[at + 3]
  local entry = how ~= '1' and redis.call('XRANGE', log, mark, mark)[1]
  redis.call('XACK', log, 'holdfast', mark)
  if redis.call('XDEL', log, mark) == 1 then
    local session = sessions[name]
    if not session then
      session = {count = 0}
      sessions[name] = session
      order[#order + 1] = name
    end
    session.count, session.mark = session.count + 1, mark
    local seen = prefix .. 'evt:' .. name .. ':' .. ARGV[at + 2]
    if entry then
      local place = entry[2][4]
      redis.call('LREM', prefix .. 'win:' .. name, 1, mark .. ' ' .. place .. '\n' .. entry[2][8])
      local remembered = redis.call('GET', seen)
      if remembered and string.match(remembered, '^%d+ %d+') == place then
        redis.call('PEXPIRE', seen, ARGV[4])
      end
      if how == '2' then
        session.floor = place
      end
    else
      redis.call('PEXPIRE', seen, ARGV[4])
    end
  end
end
for _, name in ipairs(order) do
  local session, meta, window = sessions[name], prefix .. 'ses:' .. name, prefix .. 'win:' .. name
  local there = redis.call('HMGET', meta, 'pending', 'floor')
  if there[1] then
    local pending, floor = math.max(0, there[1] - session.count), there[2] or '0 0'
    if session.floor and above(session.floor, floor) then
      floor = session.floor
    end
    local number, part = turn(session.mark)
    for _ = bound + 1, redis.call('LLEN', window) do
      local oldest = redis.call('LINDEX', window, 0)
      local n, p = turn(oldest)
      if n > number or n == number and p > part then
        break
      end
      local place = string.match(oldest, '^%S+ (%d+ %d+)\n')
      if above(place, floor) then
        floor = place
      end
      redis.call('LPOP', window)
    end
    redis.call('HSET', meta, 'pending', pending, 'acked', session.mark, 'floor', floor)
    if pending == 0 then
      redis.call('ZADD', KEYS[3], now(), ARGV[1] .. ':' .. name)
    end
  end
end
if redis.call('XLEN', log) == 0 and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
end
return false
