-- The unflushed entries of an agent in the shards of a tenant.
-- KEYS: the logs.
-- ARGV: agent, or '' for all agents, then the key prefix of each shard.
-- Returns name, stream id, position and payload of each entry, without those that a clear has deleted: their
-- event ids are no longer remembered at that position.
local found = {}
for shard, log in ipairs(KEYS) do
  local from = '-'
  while from do
    local entries = redis.call('XRANGE', log, from, '+', 'COUNT', 500)
    for _, entry in ipairs(entries) do
      local said = entry[2]
      if (ARGV[1] == '' or said[6] == ARGV[1]) and said[8] then
        local seen = redis.call('GET', ARGV[shard + 1] .. 'evt:' .. said[2])
        if seen and string.match(seen, '^%d+ %d+') == said[4] then
          found[#found + 1] = {said[2], entry[1], said[4], said[8]}
        end
      end
    end
    from = #entries == 500 and '(' .. entries[500][1]
  end
end
return found
