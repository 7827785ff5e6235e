-- A plan is kept only if it is expected to cost no more than one made for the parameters at hand; to
-- make one costs more than most searches. So filters are in a statement only where they are asked for
-- (their places stand in comments), and limits are hidden from the planner.
--
-- While a table has no statistics, every index looks as good as the one that fits. So what is looked up
-- for a row is kept from becoming a join (OFFSET 0), and an event is asked for in the order of seq, which
-- only the primary key has.
--
-- The agents are those of a first part, one or all (event_scope.py). Each event is weighed by what its
-- own agent said, and then the best of all are found.

-- name: search
-- The candidates of a question, in arrays of one row; or, if events wait for the index, these events: $2
-- agent, or NULL and the names of agents that begin with $3 and not with $4, at most $5; $6 lexemes, $7
-- names, $8 vector, $9 its model, $10 how many of each arm; $11 session, $12 types, $13 since, $14 until,
-- $15 owner, $16 and $17 the filter of payloads, each NULL for all; $18 k1, $19 b, $20 the largest body;
-- $21 about how many waiting events, and $22 messages before them.
SELECT s.*, w.*
FROM holdfast.search_events(
    $1, $2, $3, $4, $5, $6, $7, $8::real[]::public.vector::real[], $9, $10, $11, $12,
    $13, $14, $15, $16::text::jsonpath, $17::text::jsonb, $18, $19, $20, $21) s
LEFT JOIN LATERAL holdfast.waiting_events(
    $1, CASE WHEN s.indexing THEN s.queued END, $21, $22) w ON true;

-- name: bodies
-- The bodies of events: $2 sessions, $3 ids.
SELECT i.at::int, e.body
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS i (session, id, at)
JOIN holdfast.sessions s ON s.tenant = $1 AND s.id = i.session
JOIN holdfast.events e ON e.tenant = $1 AND e.session_key = s.key AND e.id = i.id;

-- name: nearest
-- The events of agents nearest to a vector ($3, of $4 numbers): all of an agent are compared, or those that its
-- index gives, unless events wait that may be in no index of numbers yet. $5 limit; $6
-- session, $7 types, $8 since, $9 until, $10 owner, $11 and $12 the filter of payloads, each NULL for
-- all. The first columns are how many agents these are, and the dimension of the tenant's vectors;
-- another one finds nothing.
WITH agents AS MATERIALIZED (
    /* whose */ SELECT $2::text COLLATE "C" AS agent
), asked AS MATERIALIZED (
    SELECT dimension FROM holdfast.event_dimensions WHERE tenant = $1
), split AS MATERIALIZED (
    SELECT a.agent, x.key IS NOT NULL AS indexed
    FROM agents a
    LEFT JOIN LATERAL (
        SELECT key FROM holdfast.event_agents
        WHERE tenant = $1 AND agent = a.agent AND near_dimension = $4 AND $6::text IS NULL
            AND NOT EXISTS (
                SELECT FROM holdfast.unindexed_events u WHERE u.tenant = $1 AND u.agent = a.agent)
        OFFSET 0
    ) x ON true
), mine AS MATERIALIZED (
    SELECT f.session_key, f.epoch, f.seq, f.distance
    FROM split a
    CROSS JOIN LATERAL holdfast.near_events(
        $1, CASE WHEN a.indexed THEN a.agent END, $3::real[]::public.vector::real[], $5, $7, $8, $9,
        $10, $11::text::jsonpath, $12::text::jsonb) f
    WHERE (SELECT dimension = $4 FROM asked)
    UNION ALL
    SELECT v.session_key, v.epoch, v.seq,
           v.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM split a
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_vectors
        WHERE tenant = $1 AND agent = a.agent AND NOT a.indexed OFFSET 0
    ) v
    WHERE (SELECT dimension = $4 FROM asked)
        AND v.model IN (
            '', (SELECT m.model FROM holdfast.event_models m WHERE m.tenant = $1))
        AND ((/* all */ TRUE) OR EXISTS (
            SELECT FROM (
                SELECT * FROM holdfast.events
                WHERE tenant = $1 AND session_key = v.session_key AND epoch = v.epoch
                    AND seq BETWEEN v.seq AND v.seq
                ORDER BY seq LIMIT 1
            ) e
            WHERE ($6::text IS NULL OR e.session_key = (
                    SELECT s.key FROM holdfast.sessions s WHERE s.tenant = $1 AND s.id = $6))
                AND ($7::text[] IS NULL OR e.type = ANY ($7))
                AND ($8::timestamptz IS NULL OR e.occurred_at >= $8)
                AND ($9::timestamptz IS NULL OR e.occurred_at < $9)
                AND ($10::text IS NULL OR e.owner = $10)
                AND ($11::text IS NULL OR holdfast.payload_fits(
                    e.filterable, e.body, (SELECT $11::text::jsonpath),
                    (SELECT $12::text::jsonb)))))
), near AS MATERIALIZED (
    SELECT session_key, epoch, seq, round((1 - distance) * 1000000) / 1000000 AS semantic
    FROM mine
    WHERE distance <= (
        -- A little further than the last: what rounds to the same score is decided by its position.
        SELECT max(distance) + 0.000002 FROM (
            SELECT distance FROM mine ORDER BY distance LIMIT (SELECT $5::bigint)) k)
)
SELECT (SELECT count(*) FROM agents), a.dimension, r.*
FROM (SELECT 1) one LEFT JOIN asked a ON true LEFT JOIN (
    SELECT n.semantic, e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch,
           e.seq
    FROM near n
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.events
        WHERE tenant = $1 AND session_key = n.session_key AND epoch = n.epoch
            AND seq BETWEEN n.seq AND n.seq
        ORDER BY seq LIMIT 1
    ) e
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
    ORDER BY n.semantic DESC, s.id, e.epoch, e.seq LIMIT (SELECT $5)
) r ON true
ORDER BY r.semantic DESC, r.session, r.epoch, r.seq;

-- name: most_recent
-- The newest events of an agent: $3 limit; $4 session, $5 types, $6 since, $7 until, $8 and $9 the
-- filter of payloads, each NULL for all.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
WHERE e.tenant = $1 AND /* whose */ e.agent = $2
    AND ($4::text IS NULL OR s.id = $4)
    AND ($5::text[] IS NULL OR e.type = ANY ($5))
    AND ($6::timestamptz IS NULL OR e.occurred_at >= $6)
    AND ($7::timestamptz IS NULL OR e.occurred_at < $7)
    AND ($8::text IS NULL OR holdfast.payload_fits(
        e.filterable, e.body, (SELECT $8::text::jsonpath), (SELECT $9::text::jsonb)))
ORDER BY e.occurred_at DESC, s.id DESC, e.epoch DESC, e.seq DESC
LIMIT $3;
