-- Claims entries for a consumer: KEYS the logs; ARGV consumer, limit, least idle milliseconds, after how
-- many milliseconds a consumer that has nothing is forgotten.
-- First what is idle, then what nobody has, each in the order of the logs taken together. For each
-- entry: the place of its log among the keys, its id, what it says, how often it was delivered.
local group, consumer = 'holdfast', ARGV[1]
local limit, idle = ARGV[2] + 0, ARGV[3]
local function turn(log, id, more)
  local number, part = string.match(id, '^(%d+)-(%d+)$')
  return {log = log, id = id, number = number + 0, part = part + 0, more = more}
end
local function earlier(one, other)
  if one.number ~= other.number then
    return one.number < other.number
  end
  return one.log < other.log or one.log == other.log and one.part < other.part
end
local function oldest(turns, most)
  if #KEYS > 1 then
    table.sort(turns, earlier)
  end
  for at = #turns, most + 1, -1 do
    turns[at] = nil
  end
  return turns
end
local logs, left = {}, {}
for log, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then
    local waiting = redis.pcall('XPENDING', key, group, 'IDLE', idle, '-', '+', limit)
    if waiting.err then
      redis.call('XGROUP', 'CREATE', key, group, '0')
      waiting = {}
    end
    logs[#logs + 1] = log
    for _, one in ipairs(waiting) do
      left[#left + 1] = turn(log, one[1], one[4] + 1)
    end
  end
end
local claimed = {}
for _, one in ipairs(oldest(left, limit)) do
  local entry = redis.call('XCLAIM', KEYS[one.log], group, consumer, 0, one.id)[1]
  claimed[#claimed + 1] = {one.log, one.id, entry[2], one.more}
end
local room = limit - #claimed
local ready, total = {}, 0
for _, log in ipairs(logs) do
  ready[log] = redis.call('XLEN', KEYS[log]) - redis.call('XPENDING', KEYS[log], group)[1]
  total = total + ready[log]
end
if total > room and #logs > 1 then
  -- More than is asked for, in several logs: look which are the oldest.
  local heads = {}
  for _, log in ipairs(logs) do
    local about = redis.call('XINFO', 'GROUPS', KEYS[log])[1]
    for at = 1, #about, 2 do
      if about[at] == 'last-delivered-id' then
        local from = string.gsub(about[at + 1], '%d+$', function(part) return part + 1 end)
        for _, entry in ipairs(redis.call('XRANGE', KEYS[log], from, '+', 'COUNT', room + 1)) do
          heads[#heads + 1] = turn(log, entry[1])
        end
      end
    end
    ready[log] = 0
  end
  for _, one in ipairs(oldest(heads, room)) do
    ready[one.log] = ready[one.log] + 1
  end
end
local fresh = {}
for _, log in ipairs(logs) do
  local count = math.min(ready[log], room)
  if count > 0 then
    local read = redis.call(
      'XREADGROUP', 'GROUP', group, consumer, 'COUNT', count, 'STREAMS', KEYS[log], '>')
    for _, entry in ipairs(read[1][2]) do
      fresh[#fresh + 1] = turn(log, entry[1], entry[2])
    end
  end
end
for _, one in ipairs(oldest(fresh, room)) do
  claimed[#claimed + 1] = {one.log, one.id, one.more, 1}
end
if #claimed == 0 then
  -- With nothing to do, there is time to forget consumers that have gone for good.
  for _, log in ipairs(logs) do
    for _, about in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[log], group)) do
      local one = {}
      for at = 1, #about, 2 do
        one[about[at]] = about[at + 1]
      end
      if one.name ~= consumer and one.pending == 0 and one.idle >= ARGV[4] + 0 then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[log], group, one.name)
      end
    end
  end
end
return claimed
