-- The same for a server with replicas, or that was one: a replica may be behind when it is promoted. It then
-- gets another replication id, so what has no such mark is compared with the durable store first.
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local function is_stale(key)
  local there = redis.call('HMGET', key, 'i', 'v', 'l')
  if not there[1] and there[2] and not there[3] then
    -- A state without a lineage was written without a durable store: it is only here.
    return false
  end
  return there[1] ~= replication
end
local function mark_current(key)
  redis.call('HSET', key, 'i', replication)
end
