-- Undo the delivery of turns, unless another consumer has claimed them since.
-- KEYS: log.
-- ARGV: consumer, then of each turn its stream id and its deliveries.
local log, group, consumer = KEYS[1], 'holdfast', ARGV[1]
for at = 2, #ARGV, 2 do
  local mark, times = ARGV[at], ARGV[at + 1] + 0
  local left = redis.pcall('XPENDING', log, group, mark, mark, 1)
  if not left.err and left[1] and left[1][4] == times then
    redis.call('XCLAIM', log, group, consumer, 0, mark, 'RETRYCOUNT', times - 1, 'JUSTID')
  end
end
