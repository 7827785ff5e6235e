-- Delete flushed turns from the log, and add the stored ones to the window of their session.
-- KEYS: log, work, idle, dirty.
-- ARGV: tenant, key prefix of the shard, length of a window, how long event ids are remembered in
-- milliseconds, then of each turn its stream id, session, event, and outcome: 1 stored, 0 not to be read,
-- 2 may still be read at its position.
-- include clock
local log, prefix, bound = KEYS[1], ARGV[2], ARGV[3] + 0
local function above(one, other)
  local epoch, seq = string.match(one, '^(%d+) (%d+)$')
  local epoch2, seq2 = string.match(other, '^(%d+) (%d+)$')
  epoch, epoch2 = epoch + 0, epoch2 + 0
  return epoch > epoch2 or epoch == epoch2 and seq + 0 > seq2 + 0
end
local sessions, order = {}, {}
for at = 5, #ARGV, 4 do
  local mark, name, how = ARGV[at], ARGV[at + 1], ARGV[at + 3]
  local entry = redis.call('XRANGE', log, mark, mark)[1]
  redis.call('XACK', log, 'holdfast', mark)
  if entry then
    redis.call('XDEL', log, mark)
    local session = sessions[name]
    if not session then
      session = {count = 0, stored = {}}
      sessions[name] = session
      order[#order + 1] = name
    end
    session.count = session.count + 1
    local seen = prefix .. 'evt:' .. name .. ':' .. ARGV[at + 2]
    local position = entry[2][4] or ''
    local head = mark .. ' ' .. position
    -- An entry that a clear deleted, or a refill loaded from the durable log, is not in late.
    local late = redis.call('LREM', prefix .. 'late:' .. name, 1, head) == 1
    if how == '1' then
      redis.call('PEXPIRE', seen, ARGV[4])
      if late then
        session.stored[#session.stored + 1] = {position, head .. '\n' .. entry[2][8]}
      end
    else
      local remembered = redis.call('GET', seen)
      if remembered and string.match(remembered, '^%d+ %d+') == position then
        redis.call('PEXPIRE', seen, ARGV[4])
      end
      if how == '2' then
        session.floor = position
      end
    end
  end
end
for _, name in ipairs(order) do
  local session, meta, window = sessions[name], prefix .. 'ses:' .. name, prefix .. 'win:' .. name
  local there = redis.call('HMGET', meta, 'pending', 'floor')
  if there[1] then
    local pending, floor = math.max(0, there[1] - session.count), there[2] or '0 0'
    local function drop(position)
      if above(position, floor) then
        floor = position
      end
    end
    if session.floor then
      drop(session.floor)
    end
    -- The stored entries replace the oldest in the window.
    local stored = session.stored
    local many = redis.call('LLEN', window) + #stored - bound
    while many > 0 do
      local oldest = redis.call('LPOP', window)
      if not oldest then
        break
      end
      local position = string.match(oldest, '^%S+ (%d+ %d+)\n')
      if position then
        drop(position)
      end
      many = many - 1
    end
    for at, one in ipairs(stored) do
      if at <= many then
        drop(one[1])
      else
        redis.call('RPUSH', window, one[2])
      end
    end
    redis.call('HSET', meta, 'pending', pending, 'floor', floor)
    if pending == 0 then
      redis.call('ZADD', KEYS[3], now(), ARGV[1] .. ':' .. name)
    end
  end
end
if redis.call('XLEN', log) == 0 and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
end
return false
