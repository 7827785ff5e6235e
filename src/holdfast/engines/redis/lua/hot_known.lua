-- The versions of the grants of sessions.
-- KEYS: sessions.
-- Returns a version per session; nothing for one that is not here, or is stale.
-- include promotion
local found = {}
for at = 1, #KEYS do
  found[at] = not is_stale(KEYS[at]) and redis.call('HGET', KEYS[at], 'heat') or ''
end
return found
