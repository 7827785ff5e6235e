-- Append messages with different ids to a transcript.
-- KEYS: index, transcript.
-- ARGV: key prefix of transcripts, agent, run, TTL in milliseconds, then id, time and body of each message.
-- Returns nothing, or the id that belongs to another message; then nothing was written.
local index, transcript = KEYS[1], KEYS[2]
local agent, run, window = ARGV[2], ARGV[3], ARGV[4]
local function add(seq, at)
  redis.call('XADD', transcript, seq .. '-0',
    'i', ARGV[at], 'r', run, 't', ARGV[at + 1], 'b', ARGV[at + 2])
end
local function is_fresh(at)
  local position = redis.call('HGET', index, 'm' .. ARGV[at])
  if not position then
    return true
  end
  local seq, of = string.match(position, '^(%d+) (.*)$')
  local entry = redis.call('XRANGE', ARGV[1] .. of, seq, seq)[1]
  if not entry then
    -- It belonged to a transcript that has expired.
    return true
  end
  local said = entry[2]
  -- The time is not compared: a retry may have another.
  if of ~= agent or said[4] ~= run or said[8] ~= ARGV[at + 2] then
    return nil
  end
  return false
end
-- One message is usually new: append it first, and undo it if it was not.
local first, last = nil, redis.call('HINCRBY', index, 's', 1)
if #ARGV == 7 and redis.call('HSETNX', index, 'm' .. ARGV[5], last .. ' ' .. agent) == 1 then
  first = last
  add(first, 5)
else
  local fresh = {}
  last = redis.call('HINCRBY', index, 's', -1)
  for at = 5, #ARGV, 3 do
    local answer = is_fresh(at)
    if answer == nil then
      return ARGV[at]
    elseif answer then
      fresh[#fresh + 1] = at
    end
  end
  if #fresh > 0 then
    first = last + 1
    redis.call('HINCRBY', index, 's', #fresh)
    for i, at in ipairs(fresh) do
      add(last + i, at)
      redis.call('HSET', index, 'm' .. ARGV[at], (last + i) .. ' ' .. agent)
    end
  end
end
if first and run ~= '' then
  redis.call('HSETNX', index, 'r' .. agent .. ' ' .. run, first)
end
-- The index expires after every transcript of the session. A tenth more than the TTL saves most of
-- the writes.
if window == '' then
  redis.call('PERSIST', transcript)
  redis.call('PERSIST', index)
else
  redis.call('PEXPIRE', transcript, window)
  local left = redis.call('PTTL', index)
  if first == 1 or left >= 0 and left < window + 0 then
    redis.call('PEXPIRE', index, math.ceil(window * 1.1))
  end
end
return false
