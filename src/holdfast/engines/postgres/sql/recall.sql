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

-- name: search_words
-- The best events of agents by words ($3 lexemes) alone: $4 limit; $5 session, $6 types, $7 since,
-- $8 until, $9 owner, $10 and $11 the filter of payloads, each NULL for all; $12 k1, $13 b. The columns
-- are those of the search that follows.
WITH agents AS MATERIALIZED (
    /* whose */ SELECT $2::text COLLATE "C" AS agent
), found AS MATERIALIZED (
    SELECT w.session_key, w.epoch, w.seq, w.score AS lexical,
           w.score / max(w.score) OVER () AS score
    FROM agents a
    CROSS JOIN LATERAL holdfast.rank_by_words(
        $1, a.agent, $3, $4, $5, $6, $7, $8, $9, $10::text::jsonpath, $11::text::jsonb, $12, $13) w
), best AS MATERIALIZED (
    -- Only now are the events themselves read; of equal scores all, since their ids decide.
    SELECT * FROM found ORDER BY score DESC FETCH FIRST (SELECT $4::bigint) ROWS WITH TIES
)
SELECT ARRAY(SELECT agent FROM agents), ARRAY(
           SELECT a.agent FROM agents a WHERE EXISTS (
               SELECT FROM holdfast.unindexed_events u WHERE u.tenant = $1 AND u.agent = a.agent)),
       NULL::text, FALSE, r.*
FROM (SELECT 1) one LEFT JOIN (
    SELECT e.score, e.lexical, NULL::float8 AS semantic, e.agent, s.id AS session, e.type, e.body, e.id,
           e.run, e.occurred_at, e.epoch, e.seq
    FROM (
        SELECT b.score, b.lexical, e.*
        FROM best b
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.events
            WHERE tenant = $1 AND session_key = b.session_key AND epoch = b.epoch
                AND seq BETWEEN b.seq AND b.seq
            ORDER BY seq LIMIT 1
        ) e
        ORDER BY b.score DESC, e.id LIMIT (SELECT $4)
    ) e
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
) r ON true
ORDER BY r.score DESC, r.id;

-- name: search
-- The best events of agents by words ($3 lexemes) and by meaning ($4), fused.
-- $5 limit; $6 session, $7 types, $8 since, $9 until, $14 owner, $15 and $16 the filter of payloads,
-- each NULL for all; $10 k1, $11 b, $12 the weight of the words, $13 the model of the vector. The first
-- columns tell which agents these are, which of them have queued events that no index has yet, which
-- model the log is embedded by, and whether events wait for a vector.
WITH agents AS MATERIALIZED (
    /* whose */ SELECT $2::text COLLATE "C" AS agent
), question AS MATERIALIZED (
    SELECT a.agent, l.lexeme, q.at, t.length::float8 / NULLIF(t.documents, 0) AS average,
           ln(1 + (t.documents::float8 - l.documents + 0.5) / (l.documents + 0.5)) AS weight
    FROM agents a
    CROSS JOIN unnest((SELECT $3::text[])) WITH ORDINALITY AS q (lexeme, at)
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_lexemes
        WHERE tenant = $1 AND agent = a.agent AND lexeme = q.lexeme OFFSET 0
    ) l
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_totals WHERE tenant = $1 AND agent = a.agent OFFSET 0
    ) t
), words AS (
    SELECT p.session_key, p.epoch, p.seq,
           -- In the order of the question, so that equal texts have equal sums.
           sum(q.weight * (p.times * ($10::float8 + 1)
                           / (p.times + $10 * (1 - $11::float8 + $11 * (p.length / q.average))))
               ORDER BY q.at) AS score
    FROM question q
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_postings
        WHERE tenant = $1 AND agent = q.agent AND lexeme = q.lexeme OFFSET 0
    ) p
    GROUP BY p.session_key, p.epoch, p.seq
), vectors AS (
    SELECT v.session_key, v.epoch, v.seq,
           round((1 - (v.embedding OPERATOR(public.<=>) (SELECT $4::real[]::public.vector)))
               * 1000000) / 1000000 AS score
    FROM agents a
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_vectors WHERE tenant = $1 AND agent = a.agent OFFSET 0
    ) v
    WHERE v.model IN ('', $13)
        AND (SELECT m.model = $13::text FROM holdfast.event_models m WHERE m.tenant = $1)
), found AS MATERIALIZED (
    SELECT session_key, epoch, seq, w.score AS lexical, v.score AS semantic
    FROM words w FULL JOIN vectors v USING (session_key, epoch, seq)
), allowed AS MATERIALIZED (
    SELECT * FROM found f
    WHERE (/* all */ TRUE) OR EXISTS (
        SELECT FROM (
            SELECT * FROM holdfast.events
            WHERE tenant = $1 AND session_key = f.session_key AND epoch = f.epoch
                AND seq BETWEEN f.seq AND f.seq
            ORDER BY seq LIMIT 1
        ) e
        WHERE ($6::text IS NULL OR e.session_key = (
                SELECT s.key FROM holdfast.sessions s WHERE s.tenant = $1 AND s.id = $6))
            AND ($7::text[] IS NULL OR e.type = ANY ($7))
            AND ($8::timestamptz IS NULL OR e.occurred_at >= $8)
            AND ($9::timestamptz IS NULL OR e.occurred_at < $9)
            AND ($14::text IS NULL OR e.owner = $14)
            AND ($15::text IS NULL OR holdfast.payload_fits(
                e.filterable, e.body, (SELECT $15::text::jsonpath), (SELECT $16::text::jsonb))))
), bounds AS (
    SELECT count(semantic) > 0 AS fused,
           CASE WHEN count(semantic) > 0 AND count(lexical) < count(*) THEN 0
                ELSE min(lexical) END AS least_word,
           max(lexical) AS most_word, min(semantic) AS least_near, max(semantic) AS most_near,
           count(lexical) AS with_words
    FROM allowed
), scored AS (
    SELECT a.*,
        CASE
            WHEN NOT b.fused THEN a.lexical / b.most_word
            ELSE LEAST(1,
                $12::float8 * CASE
                    WHEN b.with_words = 0 THEN 0
                    WHEN b.least_word = b.most_word THEN
                        CASE WHEN COALESCE(a.lexical, 0) > 0 THEN 1 ELSE 0 END
                    ELSE (COALESCE(a.lexical, 0) - b.least_word) / (b.most_word - b.least_word) END
                + (1 - $12) * CASE
                    WHEN a.semantic IS NULL THEN 0
                    WHEN b.least_near = b.most_near THEN
                        CASE WHEN b.most_near > 0 THEN 1 ELSE 0 END
                    ELSE (a.semantic - b.least_near) / (b.most_near - b.least_near) END)
        END AS score
    FROM allowed a CROSS JOIN bounds b
), best AS MATERIALIZED (
    -- Only now are the events themselves read; of equal scores all, since their ids decide.
    SELECT * FROM scored ORDER BY score DESC FETCH FIRST (SELECT $5::bigint) ROWS WITH TIES
)
SELECT ARRAY(SELECT agent FROM agents), ARRAY(
           SELECT a.agent FROM agents a WHERE EXISTS (
               SELECT FROM holdfast.unindexed_events u WHERE u.tenant = $1 AND u.agent = a.agent)),
       (SELECT m.model FROM holdfast.event_models m WHERE m.tenant = $1),
       EXISTS (
           SELECT FROM agents a CROSS JOIN LATERAL (
               SELECT FROM holdfast.unembedded_events u
               WHERE u.tenant = $1 AND u.agent = a.agent LIMIT 1) u),
       r.*
FROM (SELECT 1) one LEFT JOIN (
    SELECT b.score, b.lexical, b.semantic, e.agent, s.id AS session, e.type, e.body, e.id, e.run,
           e.occurred_at, e.epoch, e.seq
    FROM best b
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.events
        WHERE tenant = $1 AND session_key = b.session_key AND epoch = b.epoch
            AND seq BETWEEN b.seq AND b.seq
        ORDER BY seq LIMIT 1
    ) e
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
    ORDER BY b.score DESC, e.id LIMIT (SELECT $5)
) r ON true
ORDER BY r.score DESC, r.id;

-- name: nearest
-- The events of agents nearest to a vector ($3, of $4 numbers), all of them compared: $5 limit; $6
-- session, $7 types, $8 since, $9 until, $10 owner, $11 and $12 the filter of payloads, each NULL for
-- all. The first columns are how many agents these are, and the dimension of the tenant's vectors;
-- another one finds nothing.
WITH agents AS MATERIALIZED (
    /* whose */ SELECT $2::text COLLATE "C" AS agent
), asked AS MATERIALIZED (
    SELECT dimension FROM holdfast.event_dimensions WHERE tenant = $1
), mine AS MATERIALIZED (
    SELECT v.session_key, v.epoch, v.seq,
           v.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM agents a
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_vectors WHERE tenant = $1 AND agent = a.agent OFFSET 0
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
        -- A little further than the last: what rounds to the same score is decided by its id.
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
    ORDER BY n.semantic DESC, e.id LIMIT (SELECT $5)
) r ON true
ORDER BY r.semantic DESC, r.id;

-- name: most_recent
-- The newest events of an agent: $3 limit; $4 session, $5 types, $6 since, $7 until, $8 and $9 the
-- filter of payloads, each NULL for all.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
JOIN holdfast.sessions s ON s.tenant = e.tenant AND s.key = e.session_key
WHERE e.tenant = $1 AND /* whose */ e.agent = $2
    AND ($4::text IS NULL OR s.id = $4)
    AND ($5::text[] IS NULL OR e.type = ANY ($5))
    AND ($6::timestamptz IS NULL OR e.occurred_at >= $6)
    AND ($7::timestamptz IS NULL OR e.occurred_at < $7)
    AND ($8::text IS NULL OR holdfast.payload_fits(
        e.filterable, e.body, (SELECT $8::text::jsonpath), (SELECT $9::text::jsonb)))
ORDER BY e.occurred_at DESC, s.id DESC, e.epoch DESC, e.seq DESC
LIMIT $3;
