-- Lets a session go on after a place if that is ahead: KEYS meta, tenants; ARGV epoch, number,
-- tenant. The place it goes on after. Numbers are compared as texts, being as large as 64 bits.
local function above(one, other)
  if #one ~= #other then
    return #one > #other
  end
  return one > other
end
local there = redis.call('HMGET', KEYS[1], 'epoch', 'seq')
local epoch, seq = there[1] or '1', there[2] or '0'
if above(ARGV[1], epoch) or ARGV[1] == epoch and above(ARGV[2], seq) then
  epoch, seq = ARGV[1], ARGV[2]
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'seq', seq)
  redis.call('SADD', KEYS[2], ARGV[3])
end
return {epoch, seq}
