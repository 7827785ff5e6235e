-- How many shards this server is divided into: written by whoever asks first. KEYS shards; ARGV how
-- many the asker believes in.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
