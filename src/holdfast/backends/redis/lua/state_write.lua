-- Writes a state: KEYS state, versions; ARGV mode, expected version, window in microseconds, number
-- of pairs, the pairs, the fields to drop. Nothing on success, else the version that is there.
-- include clock
local state = KEYS[1]
if ARGV[2] ~= '' then
  local there = redis.call('HGET', state, 'v') or '0'
  if there ~= ARGV[2] then
    return there
  end
end
local window = ARGV[3] ~= '' and ARGV[3] or redis.call('HGET', state, 'w')
-- A lost counter starts above every version that it has ever given.
local version = redis.call('INCR', KEYS[2])
if version == 1 then
  version = now()
  redis.call('SET', KEYS[2], version)
end
if ARGV[1] == 'set' then
  redis.call('DEL', state)
end
local last = 4 + 2 * ARGV[4]
if last <= 2004 then
  redis.call('HSET', state, 'v', version, unpack(ARGV, 5, last))
else
  redis.call('HSET', state, 'v', version)
  for at = 5, last, 2000 do
    redis.call('HSET', state, unpack(ARGV, at, math.min(at + 1999, last)))
  end
end
for at = last + 1, #ARGV do
  redis.call('HDEL', state, ARGV[at])
end
if window then
  local expires = now() + window
  redis.call('HSET', state, 'w', window, 'x', expires)
  expire_at(state, expires)
end
return false
