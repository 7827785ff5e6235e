-- name: try_lock
-- One builder at a time; whether it is us.
SELECT pg_try_advisory_lock($1);

-- name: unlock
-- The next one's turn.
SELECT pg_advisory_unlock($1);

-- name: large_dimensions
-- The dimensions of collections with more than $1 documents, up to $2, and what index each has;
-- none before pgvector 0.8, whose scans go on until enough rows pass a filter.
SELECT large.dimension, format('documents_near_%s', large.dimension) AS index,
       COALESCE(i.indisvalid, false) AS built, NOT COALESCE(i.indisvalid, true) AS broken
FROM (
    SELECT DISTINCT c.dimension FROM holdfast.collections c
    WHERE c.dimension <= $2
        AND EXISTS (
            SELECT FROM pg_catalog.pg_extension e
            WHERE e.extname = 'vector'
                AND (string_to_array(e.extversion, '.')::int[])[:2] >= ARRAY[0, 8])
        AND EXISTS (
            SELECT FROM holdfast.documents d
            WHERE d.tenant = c.tenant AND d.collection = c.name ORDER BY d.id OFFSET $1)
) large
LEFT JOIN pg_catalog.pg_index i
    ON i.indexrelid = to_regclass(format('holdfast.documents_near_%s', large.dimension))
ORDER BY large.dimension;

-- name: build_statement
-- What builds an index: $1 its name, $2 what it is on, $3 its operators, $4 the dimension.
SELECT format(
    'CREATE INDEX CONCURRENTLY %I ON holdfast.documents USING hnsw (%s %s) WHERE dimension = %s',
    $1::text, $2::text, $3::text, $4::int);

-- name: drop_statement
-- What removes an index whose build was broken off.
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS holdfast.%I', $1::text);

-- name: mark
-- Search those with more than $1 documents through an index, where there is one, and no others.
UPDATE holdfast.collections c SET indexed = NOT c.indexed
WHERE c.indexed <> (
    COALESCE((
        SELECT i.indisvalid FROM pg_catalog.pg_index i
        WHERE i.indexrelid = to_regclass(format('holdfast.documents_near_%s', c.dimension))
    ), false)
    AND EXISTS (
        SELECT FROM holdfast.documents d
        WHERE d.tenant = c.tenant AND d.collection = c.name ORDER BY d.id OFFSET $1));

-- name: progress
-- How far the builds are: what is done, and of how much.
SELECT p.phase, p.tuples_done AS done, GREATEST(p.tuples_total, c.reltuples::bigint) AS total
FROM pg_catalog.pg_stat_progress_create_index p
JOIN pg_catalog.pg_class c ON c.oid = p.relid
WHERE p.relid = to_regclass('holdfast.documents');

-- name: large_agents
-- The agents with more than $1 vectors of events, up to $2 numbers each, the $3 largest; and what index each
-- has. None before pgvector 0.8.
SELECT large.tenant, large.agent, large.dimension, large.index,
       COALESCE(i.indisvalid, false) AS built, NOT COALESCE(i.indisvalid, true) AS broken
FROM (
    SELECT a.tenant, a.agent, d.dimension, format('event_vectors_near_%s_%s', a.key, d.dimension) AS index
    FROM holdfast.event_agents a
    JOIN holdfast.event_dimensions d ON d.tenant = a.tenant
    WHERE d.dimension <= $2 AND a.documents > $1
        AND EXISTS (
            SELECT FROM pg_catalog.pg_extension e
            WHERE e.extname = 'vector'
                AND (string_to_array(e.extversion, '.')::int[])[:2] >= ARRAY[0, 8])
        AND EXISTS (
            SELECT FROM holdfast.event_vectors v
            WHERE v.tenant = a.tenant AND v.agent = a.agent OFFSET $1)
    ORDER BY a.documents DESC LIMIT $3
) large
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = to_regclass(format('holdfast.%I', large.index))
ORDER BY large.index;

-- name: build_agent_statement
-- What builds the index of an agent's vectors: $1 its name, $2 tenant, $3 agent, $4 dimension. In 16 bits,
-- since what it gives is compared again. Built with more candidates than usual, a search needs fewer.
SELECT format(
    'CREATE INDEX CONCURRENTLY %I ON holdfast.event_vectors USING hnsw '
    '((public.l2_normalize(embedding)::public.halfvec(%s)) public.halfvec_cosine_ops) '
    'WITH (ef_construction = 128) WHERE tenant = %L AND agent = %L AND public.vector_dims(embedding) = %s',
    $1::text, $4::int, $2::text, $3::text, $4::int);

-- name: mark_agents
-- Search the vectors of agents ($1 tenants, $2 agents, $3 dimensions) through their indexes, and no others.
UPDATE holdfast.event_agents a SET near_dimension = COALESCE(w.dimension, 0)
FROM holdfast.event_agents b
LEFT JOIN unnest($1::text[], $2::text[], $3::int[]) AS w (tenant, agent, dimension)
    ON w.tenant = b.tenant AND w.agent = b.agent
WHERE a.tenant = b.tenant AND a.agent = b.agent
    AND a.near_dimension <> COALESCE(w.dimension, 0);

-- name: unused_agent_indexes
-- The indexes of agents' vectors that are not among $1.
SELECT c.relname AS name FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'i'
    AND starts_with(c.relname, 'event_vectors_near_') AND c.relname <> ALL ($1::text[]);
