-- Delete what a clear covers.
-- KEYS: window, late, then the key that remembers each event id.
-- ARGV: the position of each of these events, then the entries of the window as they are stored there.
for at = 3, #KEYS do
  local seen = redis.call('GET', KEYS[at])
  if seen and string.match(seen, '^%d+ %d+') == ARGV[at - 2] then
    redis.call('DEL', KEYS[at])
  end
end
for at = #KEYS - 1, #ARGV do
  if redis.call('LREM', KEYS[2], 1, string.match(ARGV[at], '^[^\n]*')) == 0 then
    redis.call('LREM', KEYS[1], 1, ARGV[at])
  end
end
return false
