-- Delete a transcript, or one run of it.
-- KEYS: index, transcript.
-- ARGV: agent, run or ''.
local index, transcript, agent, run = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local from = '-'
if run ~= '' then
  -- No message of the run is older than its first one.
  from = redis.call('HGET', index, 'r' .. agent .. ' ' .. run)
  redis.call('HDEL', index, 'r' .. agent .. ' ' .. run)
end
while from do
  local entries = redis.call('XRANGE', transcript, from, '+', 'COUNT', 500)
  for _, entry in ipairs(entries) do
    local said = entry[2]
    if run == '' or said[4] == run then
      redis.call('HDEL', index, 'm' .. said[2], 'r' .. agent .. ' ' .. said[4])
      redis.call('XDEL', transcript, entry[1])
    end
  end
  local last = entries[#entries]
  from = last and string.match(last[1], '^%d+') .. '-1'
end
if run == '' then
  redis.call('DEL', transcript)
end
return false
