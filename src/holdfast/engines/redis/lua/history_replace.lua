-- Replace the messages of a transcript after a number, if its newest message has the expected number.
-- KEYS: index, transcript.
-- ARGV: key prefix of transcripts, agent, run, TTL in milliseconds, the number, the expected number, then id,
-- time and body of each message.
-- Returns 'OK' and the number of the newest message; or, with nothing written, 'OTHER' and the id that
-- belongs to a message elsewhere in the session, or 'LAST' and the number that the newest message has.
local index, transcript = KEYS[1], KEYS[2]
local agent, run, window = ARGV[2], ARGV[3], ARGV[4]
local after, expected = ARGV[5] + 0, ARGV[6] + 0
local function last()
  local newest = redis.call('XREVRANGE', transcript, '+', '-', 'COUNT', 1)[1]
  return newest and string.match(newest[1], '^%d+') or '0'
end
local gone = redis.call('XRANGE', transcript, string.format('%.0f', after + 1), '+')
local actual = last()
if actual + 0 ~= expected then
  -- A retry finds what it wrote.
  local same = #gone == (#ARGV - 6) / 3
  for at, entry in ipairs(gone) do
    local said, arg = entry[2], 4 + 3 * at
    same = same and said[2] == ARGV[arg] and said[4] == run and said[8] == ARGV[arg + 2]
  end
  return {same and 'OK' or 'LAST', actual}
end
local leaving = {}
for _, entry in ipairs(gone) do
  leaving[entry[2][2]] = true
end
for at = 7, #ARGV, 3 do
  local position = not leaving[ARGV[at]] and redis.call('HGET', index, 'm' .. ARGV[at])
  if position then
    local seq, of = string.match(position, '^(%d+) (.*)$')
    -- One of a transcript that has expired is nobody's.
    if redis.call('XRANGE', ARGV[1] .. of, seq, seq)[1] then
      return {'OTHER', ARGV[at]}
    end
  end
end
for _, entry in ipairs(gone) do
  redis.call('HDEL', index, 'm' .. entry[2][2])
  redis.call('XDEL', transcript, entry[1])
end
local first
for at = 7, #ARGV, 3 do
  local seq = redis.call('HINCRBY', index, 's', 1)
  first = first or seq
  redis.call('XADD', transcript, seq .. '-0',
    'i', ARGV[at], 'r', run, 't', ARGV[at + 1], 'b', ARGV[at + 2])
  redis.call('HSET', index, 'm' .. ARGV[at], seq .. ' ' .. agent)
end
if first and run ~= '' then
  redis.call('HSETNX', index, 'r' .. agent .. ' ' .. run, first)
end
if redis.call('XLEN', transcript) == 0 then
  redis.call('DEL', transcript)
elseif window == '' then
  redis.call('PERSIST', transcript)
  redis.call('PERSIST', index)
else
  redis.call('PEXPIRE', transcript, window)
  local left = redis.call('PTTL', index)
  if first == 1 or left >= 0 and left < window + 0 then
    redis.call('PEXPIRE', index, math.ceil(window * 1.1))
  end
end
return {'OK', last()}
