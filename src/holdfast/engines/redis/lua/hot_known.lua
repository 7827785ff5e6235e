-- The heat of the grants of sessions: KEYS sessions. Nothing for one that is not known here.
local found = {}
for at = 1, #KEYS do
  found[at] = redis.call('HGET', KEYS[at], 'heat') or ''
end
return found
