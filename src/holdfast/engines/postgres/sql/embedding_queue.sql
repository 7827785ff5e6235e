-- name: adopt
-- Make a model the tenant's: $2 model, $3 dimension, $4 whether it reads what was said before. Whether it
-- is new.
SELECT holdfast.adopt_turn_model($1, $2, $3, $4);

-- name: take
-- Events that wait for a vector, for a worker: $2 about how many, $3 for how many seconds. The last columns
-- are the number of each, and what was said before it if the model reads that.
SELECT w.*, c.number, c.type AS said_type, c.body AS said_body
FROM holdfast.take_unembedded($1, $2, $3) w
LEFT JOIN LATERAL (
    -- Event by event (OFFSET 0, LIMIT 1): as a join it would read the numbers of all events.
    SELECT x.number, c.type, c.body
    FROM (
        SELECT * FROM holdfast.event_numbers
        WHERE session_key = w.session_key AND epoch = w.epoch AND seq = w.seq OFFSET 0
    ) x
    LEFT JOIN LATERAL (
        SELECT e.type, e.body FROM (
            SELECT p.epoch, p.seq FROM (
                -- Numbers ascend, so no more can be in reach (REACH in recall_rules.py).
                SELECT * FROM holdfast.event_numbers
                WHERE x.said AND session_key = x.session_key AND (epoch, seq) < (x.epoch, x.seq)
                    AND (SELECT m.reads_context FROM holdfast.event_models m WHERE m.tenant = $1)
                ORDER BY epoch DESC, seq DESC LIMIT 256
            ) p
            WHERE p.seq >= x.seq - 256 AND p.said AND p.agent_key = x.agent_key
            ORDER BY p.epoch DESC, p.seq DESC LIMIT 1
        ) p
        CROSS JOIN LATERAL (
            SELECT type, body FROM holdfast.events
            WHERE tenant = $1 AND session_key = x.session_key AND epoch = p.epoch
                AND seq BETWEEN p.seq AND p.seq
            ORDER BY seq LIMIT 1
        ) e
    ) c ON true
    OFFSET 0
) c ON true;

-- name: tail
-- Events of agents that wait for a vector, whoever has taken them: $3 limit. The last columns are as in take.
SELECT w.*, c.number, c.type AS said_type, c.body AS said_body FROM (
    SELECT array_agg(q.agent) AS agents, array_agg(q.session_key) AS keys,
           array_agg(q.epoch) AS epochs, array_agg(q.first_seq) AS starts,
           array_agg(q.last_seq) AS ends
    FROM (
        SELECT u.* FROM unnest($2::text[]) AS a (agent)
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.unembedded_events u
            WHERE u.tenant = $1 AND u.agent = a.agent
            ORDER BY u.session_key, u.epoch, u.first_seq LIMIT $3
        ) u
        LIMIT $3
    ) q
) r CROSS JOIN LATERAL holdfast.unembedded_in(
    $1, r.agents, r.keys, r.epochs, r.starts, r.ends, $3) w
LEFT JOIN LATERAL (
    -- Event by event (OFFSET 0, LIMIT 1): as a join it would read the numbers of all events.
    SELECT x.number, c.type, c.body
    FROM (
        SELECT * FROM holdfast.event_numbers
        WHERE session_key = w.session_key AND epoch = w.epoch AND seq = w.seq OFFSET 0
    ) x
    LEFT JOIN LATERAL (
        SELECT e.type, e.body FROM (
            SELECT p.epoch, p.seq FROM (
                -- Numbers ascend, so no more can be in reach (REACH in recall_rules.py).
                SELECT * FROM holdfast.event_numbers
                WHERE x.said AND session_key = x.session_key AND (epoch, seq) < (x.epoch, x.seq)
                    AND (SELECT m.reads_context FROM holdfast.event_models m WHERE m.tenant = $1)
                ORDER BY epoch DESC, seq DESC LIMIT 256
            ) p
            WHERE p.seq >= x.seq - 256 AND p.said AND p.agent_key = x.agent_key
            ORDER BY p.epoch DESC, p.seq DESC LIMIT 1
        ) p
        CROSS JOIN LATERAL (
            SELECT type, body FROM holdfast.events
            WHERE tenant = $1 AND session_key = x.session_key AND epoch = p.epoch
                AND seq BETWEEN p.seq AND p.seq
            ORDER BY seq LIMIT 1
        ) e
    ) c ON true
    OFFSET 0
) c ON true;

-- name: keep
-- Keep a batch of vectors, and shorten its ranges.
SELECT holdfast.keep_turn_vectors(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- name: give_back
-- Let ranges wait for somebody else: $2 agents, $3 session keys, $4 epochs, $5 first places.
UPDATE holdfast.unembedded_events q SET taken_until = '-infinity'
FROM unnest($2::text[], $3::bigint[], $4::int[], $5::bigint[]) AS r (agent, key, epoch, start)
WHERE q.tenant = $1 AND q.agent = r.agent AND q.session_key = r.key AND q.epoch = r.epoch
    AND q.first_seq = r.start;

-- name: retry
-- Let what the model refused wait once more.
SELECT holdfast.retry_refused($1);

-- name: unindexed_agents
-- Which agents of a tenant have events that no index has yet: $2 limit.
SELECT DISTINCT agent FROM holdfast.unindexed_events WHERE tenant = $1 LIMIT $2;

-- name: status
-- The tenant's model, how many vectors are of it, of others and given, and what waits.
SELECT m.model, m.dimension, v.embedded, v.outdated, v.given,
       (SELECT COALESCE(sum(last_seq - first_seq + 1), 0)::bigint
        FROM holdfast.unembedded_events WHERE tenant = $1)
       + CASE WHEN m.model IS NULL THEN 0 ELSE
           (SELECT COALESCE(sum(last_seq - first_seq + 1), 0)::bigint
            FROM holdfast.unindexed_events WHERE tenant = $1) END AS waiting,
       (SELECT count(*) FROM holdfast.refused_events r
        JOIN holdfast.events e ON e.tenant = r.tenant AND e.session_key = r.session_key
            AND e.epoch = r.epoch AND e.seq = r.seq
        WHERE r.tenant = $1) AS refused
FROM (SELECT 1) one
LEFT JOIN holdfast.event_models m ON m.tenant = $1
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.model <> '' AND e.model = m.model) AS embedded,
           count(*) FILTER (WHERE e.model <> '' AND e.model IS DISTINCT FROM m.model) AS outdated,
           count(*) FILTER (WHERE e.model = '') AS given
    FROM holdfast.event_vectors e WHERE e.tenant = $1
) v;

-- name: tenants_waiting
-- The tenants of a model ($1) with something to index or to embed that nobody has taken.
SELECT * FROM holdfast.tenants_to_embed($1);
