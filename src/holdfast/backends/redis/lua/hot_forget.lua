-- Drops what a clear covers: KEYS window, then where event ids are remembered; ARGV the place of each
-- of these, then entries of the window as they stand there.
for at = 2, #KEYS do
  local seen = redis.call('GET', KEYS[at])
  if seen and string.match(seen, '^%d+ %d+') == ARGV[at - 1] then
    redis.call('DEL', KEYS[at])
  end
end
for at = #KEYS, #ARGV do
  redis.call('LREM', KEYS[1], 1, ARGV[at])
end
return false
