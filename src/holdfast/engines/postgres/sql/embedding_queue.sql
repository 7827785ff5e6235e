-- name: adopt
-- Make a model the tenant's: $2 model, $3 dimension. Whether it is new.
SELECT holdfast.adopt_model($1, $2, $3);

-- name: take
-- Events that wait for a vector, for a worker: $2 about how many, $3 for how many seconds.
SELECT * FROM holdfast.take_unembedded($1, $2, $3);

-- name: tail
-- Events of agents that wait for a vector, whoever has taken them: $3 limit.
SELECT w.* FROM (
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
) r, holdfast.unembedded_in($1, r.agents, r.keys, r.epochs, r.starts, r.ends, $3) w;

-- name: keep
-- Keep a batch of vectors, and shorten its ranges.
SELECT holdfast.keep_embeddings(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

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
SELECT m.tenant FROM holdfast.event_models m
WHERE m.model = $1 AND (
    EXISTS (SELECT FROM holdfast.unindexed_events u WHERE u.tenant = m.tenant)
    OR EXISTS (
        SELECT FROM holdfast.unembedded_events u
        WHERE u.tenant = m.tenant AND u.taken_until <= holdfast.now()));
