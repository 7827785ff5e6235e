-- The same for a server with replicas, or that was one: a replica may be behind when it is promoted. It then
-- gets another replication id, so what has no such mark is compared with the durable store first.
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local function is_stale(key)
  return redis.call('HGET', key, 'i') ~= replication
end
local function mark_current(key)
  redis.call('HSET', key, 'i', replication)
end
