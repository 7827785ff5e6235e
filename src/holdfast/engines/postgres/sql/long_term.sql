-- name: save
-- Keep a fact with its words and links; its id, or that of an earlier save with the same key.
SELECT holdfast.save_fact_about(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[], $11, $12, $13, $14, $15, $16, $17::text[],
    $18::int[], $19);

-- name: update
-- Keep a fact in place of $12, with that fact's fields where none are given; its id, or that of an
-- earlier update with the same key.
SELECT holdfast.update_fact(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[], $11, $12, $13, $14, $15, $16, $17::text[],
    $18::int[]);

-- name: replayed
-- The id that an earlier save with the key $4 and the fingerprint $5 was given.
SELECT holdfast.replayed_fact($1, s.key, $4, $5, holdfast.now())
FROM holdfast.fact_scopes s
WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3;

-- name: get
-- One fact by its id.
SELECT f.id, f.content, f.metadata, f.topic, f.confidence, f.source, f.entities, f.created_at,
       f.expires_at, f.superseded_by, f.subject
FROM holdfast.fact_scopes s
JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key AND f.id = $4
WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3
    AND (f.expires_at IS NULL OR f.expires_at > holdfast.now());

-- name: list
-- A page of facts by their ids, which are ordered by time: $4 limit, $5 topic or NULL, $6 least
-- confidence, $7 whether with superseded ones, $8 the id of the last one of the page before or NULL.
SELECT f.id, f.content, f.metadata, f.topic, f.confidence, f.source, f.entities, f.created_at,
       f.expires_at, f.superseded_by, f.subject
FROM holdfast.facts f
WHERE f.tenant = $1
    AND f.scope = (
        SELECT s.key FROM holdfast.fact_scopes s
        WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3)
    AND f.id < (SELECT COALESCE($8::text, '~'))  -- ids are of hexadecimal digits
    AND ($7::boolean OR f.superseded_by IS NULL)
    AND (f.expires_at IS NULL OR f.expires_at > (SELECT holdfast.now()))
    AND ($5::text IS NULL OR f.topic = $5) AND f.confidence >= $6
ORDER BY f.id DESC LIMIT $4;

-- name: namespaces
-- Where the agent $2 has facts: $3 limit, $4 the last namespace of the page before.
SELECT s.namespace
FROM holdfast.fact_scopes s
CROSS JOIN LATERAL (
    SELECT f.id FROM holdfast.facts f
    WHERE f.tenant = $1 AND f.scope = s.key
        AND (f.expires_at IS NULL OR f.expires_at > (SELECT holdfast.now()))
    ORDER BY f.id DESC LIMIT 1  -- in the order of the key, so that no plan reads all facts
) live
WHERE s.tenant = $1 AND s.agent = $2 AND s.namespace > $4
ORDER BY s.namespace LIMIT $3;

-- name: recent
-- The newest live facts: $4 limit, $5 topic or NULL, $6 least confidence.
SELECT f.id, f.content, f.metadata, f.topic, f.confidence, f.source, f.entities, f.created_at,
       f.expires_at, f.superseded_by, f.subject
FROM holdfast.facts f
WHERE f.tenant = $1 AND f.superseded_by IS NULL
    AND f.scope = (
        SELECT s.key FROM holdfast.fact_scopes s
        WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3)
    AND (f.expires_at IS NULL OR f.expires_at > (SELECT holdfast.now()))
    AND ($5::text IS NULL OR f.topic = $5) AND f.confidence >= $6
ORDER BY f.number DESC LIMIT $4;

-- name: search
-- The best facts by words, meaning and links, as the kernel's ranking scores them: $4 limit, $5
-- topic or NULL, $6 least confidence; $7 language, $8 lexemes, $9 k1, $10 b; $11 model, $12 the
-- query's vector or NULL; $13 entities, $14 what each counts; $15 mode, $16 the weight of words,
-- $17 of links. Rows without a score are live facts whose words or vector are not there yet.
WITH scope AS MATERIALIZED (
    SELECT s.key, s.languages <> ARRAY[$7::text] AS mixed, holdfast.now() AS now
    FROM holdfast.fact_scopes s
    WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3
), words AS (
    SELECT w.number, w.score
    FROM scope s CROSS JOIN LATERAL holdfast.fact_words($1, s.key, $7, $8, s.now, $9, $10) w
), vectors AS MATERIALIZED (
    -- In as many digits as 32 bits have, so that vectors of one direction tie.
    SELECT v.number, round((1 - (v.embedding OPERATOR(public.<=>)
        (SELECT $12::real[]::public.vector)))::numeric, 6)::double precision AS cosine
    FROM scope s
    JOIN holdfast.fact_vectors v
        ON v.tenant = $1 AND v.scope = s.key AND v.model = $11
            AND v.dimension = public.vector_dims((SELECT $12::real[]::public.vector))
    WHERE v.expires_at IS NULL OR v.expires_at > s.now
), links AS (
    SELECT l.number, max(e.counts) AS counts
    FROM scope s
    CROSS JOIN unnest($13::text[], $14::double precision[]) AS e (entity, counts)
    CROSS JOIN LATERAL (
        SELECT l.number FROM holdfast.fact_links l
        WHERE l.tenant = $1 AND l.scope = s.key AND l.entity = e.entity
            AND (l.expires_at IS NULL OR l.expires_at > s.now)
        OFFSET 0  -- never all links of the tenant
    ) l
    GROUP BY l.number
), allowed AS MATERIALIZED (
    SELECT number, w.score AS lexical, v.cosine AS semantic, l.counts AS linked
    FROM words w FULL JOIN vectors v USING (number) FULL JOIN links l USING (number)
    WHERE ($5::text IS NULL AND $6::double precision <= 0) OR EXISTS (
        SELECT FROM scope s
        JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key AND f.superseded_by IS NULL
        WHERE f.number = COALESCE(w.number, v.number, l.number)
            AND ($5 IS NULL OR f.topic = $5) AND f.confidence >= $6)
), bounds AS (
    SELECT count(semantic) > 0 AS fused, count(linked) > 0 AS blended,
           -- A fact that meaning alone found has none of the words.
           min(COALESCE(lexical, 0)) FILTER (WHERE lexical IS NOT NULL OR semantic IS NOT NULL)
               AS least_word,
           COALESCE(max(lexical), 0) AS most_word, min(semantic) AS least_near,
           max(semantic) AS most_near
    FROM allowed
), told AS (
    SELECT a.*, b.blended, CASE
        WHEN a.lexical IS NULL AND a.semantic IS NULL THEN 0
        WHEN NOT b.fused THEN a.lexical / b.most_word
        ELSE LEAST(1,
            $16::double precision * CASE
                WHEN b.least_word < b.most_word
                    THEN (COALESCE(a.lexical, 0) - b.least_word) / (b.most_word - b.least_word)
                ELSE sign(b.most_word) END
            + (1 - $16) * CASE
                WHEN a.semantic IS NULL THEN 0
                WHEN b.least_near < b.most_near
                    THEN (a.semantic - b.least_near) / (b.most_near - b.least_near)
                ELSE GREATEST(sign(b.most_near), 0) END)
        END AS fused
    FROM allowed a CROSS JOIN bounds b
), ranked AS MATERIALIZED (
    SELECT t.number, t.lexical, t.semantic, t.linked, CASE $15::text
        WHEN 'vector' THEN (1 + t.semantic) / 2
        WHEN 'graph' THEN t.linked
        ELSE CASE WHEN t.blended
            THEN (1 - $17::double precision) * t.fused + $17 * COALESCE(t.linked, 0)
            ELSE t.fused END
        END AS score
    FROM told t
    ORDER BY score DESC, t.number DESC LIMIT $4
)
SELECT r.score, r.lexical IS NOT NULL AS by_text, r.semantic IS NOT NULL AS by_vector,
       r.linked IS NOT NULL AS by_graph, s.key AS scope, r.number, f.id, f.content, f.metadata,
       f.topic, f.confidence, f.source, f.entities, f.created_at, f.expires_at, f.superseded_by,
       f.subject
FROM scope s CROSS JOIN ranked r
JOIN holdfast.facts f
    ON f.tenant = $1 AND f.scope = s.key AND f.number = r.number AND f.superseded_by IS NULL
UNION ALL
SELECT NULL, t.number IS NULL, $12 IS NOT NULL AND v.number IS NULL, false, s.key, f.number, NULL,
       f.content, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM scope s
JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key AND f.superseded_by IS NULL
LEFT JOIN LATERAL (
    SELECT t.number FROM holdfast.fact_texts t
    WHERE t.tenant = $1 AND t.scope = s.key AND t.number = f.number AND t.language = $7 LIMIT 1
) t ON true
LEFT JOIN vectors v ON v.number = f.number
WHERE (f.expires_at IS NULL OR f.expires_at > s.now)
    AND (t.number IS NULL OR ($12 IS NOT NULL AND v.number IS NULL))
    -- Looked for only where something must be lacking.
    AND (SELECT s.mixed OR ($12 IS NOT NULL AND (SELECT count(*) FROM vectors) <> (
            SELECT count(*) FROM holdfast.facts f
            WHERE f.tenant = $1 AND f.scope = s.key AND f.superseded_by IS NULL
                AND (f.expires_at IS NULL OR f.expires_at > s.now))) FROM scope s)
ORDER BY score DESC NULLS LAST, number DESC;

-- name: complete
-- Index facts in a language and keep vectors of a model, of those that are live: $2 scope, $3
-- numbers; $4 language, $5 which of them by place, $6 their lengths; $7 place, $8 lexeme and $9
-- times of each posting; $10 model, $11 dimension, $12 which of them, $13 all floats.
WITH live AS MATERIALIZED (
    -- Locked one level down: Citus cannot keep the rows of a part that locks, and use them twice.
    SELECT l.number, l.expires_at, l.at FROM (
        SELECT f.number, f.expires_at, i.at
        FROM unnest($3::bigint[]) WITH ORDINALITY AS i (number, at)
        JOIN holdfast.facts f
            ON f.tenant = $1 AND f.scope = $2 AND f.number = i.number AND f.superseded_by IS NULL
        ORDER BY f.number FOR SHARE OF f
    ) l
), postings AS MATERIALIZED (
    SELECT p.at, p.lexeme, p.times FROM unnest($7::int[], $8::text[], $9::int[])
        AS p (at, lexeme, times)
), texts AS (
    INSERT INTO holdfast.fact_texts (tenant, scope, number, language, length, expires_at, lexemes)
    SELECT $1, $2, l.number, $4, t.length, l.expires_at, COALESCE(w.lexemes, '{}')
    FROM live l
    JOIN unnest($5::int[], $6::int[]) AS t (at, length) ON t.at = l.at
    LEFT JOIN (SELECT at, array_agg(lexeme) AS lexemes FROM postings GROUP BY at) w ON w.at = l.at
    ON CONFLICT DO NOTHING
    RETURNING number, length, expires_at
), posted AS (
    INSERT INTO holdfast.fact_postings
        (tenant, scope, language, lexeme, number, times, length, expires_at)
    SELECT $1, $2, $4, p.lexeme, t.number, p.times, t.length, t.expires_at
    FROM texts t JOIN live l ON l.number = t.number JOIN postings p ON p.at = l.at
)
INSERT INTO holdfast.fact_vectors (tenant, scope, number, model, dimension, expires_at, embedding)
SELECT $1, $2, l.number, $10, $11::int, l.expires_at,
       ($13::real[])[(v.nth::int - 1) * $11 + 1 : v.nth::int * $11]::public.vector
FROM live l JOIN unnest($12::int[]) WITH ORDINALITY AS v (at, nth) ON v.at = l.at
ON CONFLICT DO NOTHING;

-- name: delete
-- Remove one fact; whether it was there.
SELECT holdfast.delete_fact($1, $2, $3, $4);

-- name: clear
-- Remove all facts of a scope.
SELECT holdfast.clear_facts($1, $2, $3);

-- name: purge
-- Remove facts that have expired, of all tenants, a batch at a time; how many there were.
SELECT holdfast.purge_facts($1);
