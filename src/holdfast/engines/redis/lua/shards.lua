-- The number of shards of this server; the first caller sets it.
-- KEYS: shards.
-- ARGV: the number to set.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
