-- name: unindexed
-- The events of some ranges of an agent's queue; a range whose events are gone has one empty row.
-- $3: ranges are taken until they have so many events.
SELECT u.session_key, u.epoch, u.first_seq, e.seq, e.type, e.body
FROM (
    SELECT q.*, sum(q.last_seq - q.first_seq + 1) OVER (
        ORDER BY q.session_key, q.epoch, q.first_seq ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW
    ) AS before
    FROM (
        SELECT * FROM holdfast.unindexed_events
        WHERE tenant = $1 AND agent = $2
        ORDER BY session_key, epoch, first_seq LIMIT $3
    ) q
) u
LEFT JOIN holdfast.events e
    ON e.tenant = u.tenant AND e.session_key = u.session_key AND e.epoch = u.epoch
    -- Not by the index of agents: a planner without statistics would read all that the agent has.
    AND e.seq BETWEEN u.first_seq AND u.last_seq AND (e.agent || '') = u.agent
WHERE COALESCE(u.before, 0) < $3
ORDER BY u.session_key, u.epoch, u.first_seq, e.seq;

-- name: index
-- Put a batch into the index.
SELECT holdfast.index_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: queue
-- Which agents of which tenants have events that no index has yet: $1 limit.
SELECT DISTINCT tenant, agent FROM holdfast.unindexed_events LIMIT $1;
