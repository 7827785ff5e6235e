-- Append events of one session, all or none.
-- KEYS: index.
-- ARGV: key prefix of streams, TTL in milliseconds, then stream, run, id, time and body of each event.
-- Returns their numbers and times in order, or the id that belongs to another event. Messages go to the
-- streams of transcripts, other events to a stream beside each; both share numbers and the index of ids.
local index, prefix, window = KEYS[1], ARGV[1], ARGV[2]
local positions, times, fresh = {}, {}, {}
for at = 3, #ARGV, 5 do
  local position = redis.call('HGET', index, 'm' .. ARGV[at + 2])
  local seq, of, entry
  if position then
    seq, of = string.match(position, '^(%d+) (.*)$')
    entry = redis.call('XRANGE', prefix .. of, seq, seq)[1]
  end
  if entry then
    local said = entry[2]
    -- The time is not compared: a retry may have another.
    if of ~= ARGV[at] or said[4] ~= ARGV[at + 1] or said[8] ~= ARGV[at + 4] then
      return ARGV[at + 2]
    end
    positions[#positions + 1], times[#times + 1] = seq + 0, said[6]
  else
    -- Not seen, or of a stream that has expired.
    fresh[#fresh + 1] = at
    positions[#positions + 1], times[#times + 1] = -#fresh, ARGV[at + 3]
  end
end
local last = redis.call('HINCRBY', index, 's', #fresh) - #fresh
local touched = {}
for i, at in ipairs(fresh) do
  local stream, run = ARGV[at], ARGV[at + 1]
  redis.call('XADD', prefix .. stream, (last + i) .. '-0',
    'i', ARGV[at + 2], 'r', run, 't', ARGV[at + 3], 'b', ARGV[at + 4])
  redis.call('HSET', index, 'm' .. ARGV[at + 2], (last + i) .. ' ' .. stream)
  if run ~= '' then
    redis.call('HSETNX', index, 'r' .. stream .. ' ' .. run, last + i)
  end
  touched[prefix .. stream] = true
end
for stream in pairs(touched) do
  if window == '' then
    redis.call('PERSIST', stream)
  else
    redis.call('PEXPIRE', stream, window)
  end
end
-- The index expires after every stream of the session.
if window == '' then
  redis.call('PERSIST', index)
else
  local left = redis.call('PTTL', index)
  if left < window + 0 and (left >= 0 or last == 0) then
    redis.call('PEXPIRE', index, math.ceil(window * 1.1))
  end
end
for i, position in ipairs(positions) do
  if position < 0 then
    positions[i] = last - position
  end
end
return {positions, times}
