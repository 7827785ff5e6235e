-- Delete all events of a channel; the newest number stays.
-- KEYS: events, ids, expiries, newest number.
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return 0
