-- name: write
-- Add documents ($3 false) or replace them ($3 true), all or none.
SELECT holdfast.put_documents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: search
-- The documents nearest to a vector, and those that 32 bits cannot tell from the last of them: $3
-- the vector, $4 its dimension, $5 limit, $6 a few more than the limit, $7 what 32 bits may be off.
-- TRUE stands for the filter. The first columns are the collection's, whatever is found; where it
-- has to be searched through its index, nothing is.
WITH asked AS MATERIALIZED (
    SELECT c.dimension, c.indexed FROM holdfast.collections c
    WHERE c.tenant = $1 AND c.name = $2
        -- In order, so that the first is found by the key and not by reading until there is one.
        AND (SELECT d.id FROM holdfast.documents d WHERE d.tenant = $1 AND d.collection = $2
             ORDER BY d.id LIMIT 1) IS NOT NULL
), found AS MATERIALIZED (
    SELECT d.id, d.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM holdfast.documents d
    WHERE (d.tenant = $1 AND d.collection = $2) /* scope */ = TRUE AND (/* filter */ TRUE)
        AND (SELECT a.dimension = $4 AND NOT a.indexed FROM asked a)
), ranked AS MATERIALIZED (
    -- Hidden from the planner, so that one plan serves all limits: to make one costs a fifth more.
    SELECT id, distance FROM found ORDER BY distance, id LIMIT (SELECT $6::bigint)
)
SELECT a.dimension, a.indexed, f.id, f.content, f.metadata, f.embedding, f.subject
FROM asked a LEFT JOIN (
    SELECT d.id, d.content, d.metadata, public.vector_send(d.embedding) AS embedding, d.subject
    FROM ranked r
    JOIN holdfast.documents d ON d.tenant = $1 AND d.collection = $2 AND d.id = r.id
    WHERE r.distance <= COALESCE(
        (SELECT k.distance FROM ranked k LIMIT 1 OFFSET (SELECT GREATEST($5 - 1, 0))), 2) + $7
) f ON true;

-- name: search_indexed
-- The same through the index of the dimension; if it does not give enough, all are compared.
WITH asked AS MATERIALIZED (
    SELECT c.dimension, c.indexed FROM holdfast.collections c
    WHERE c.tenant = $1 AND c.name = $2
        AND (SELECT d.id FROM holdfast.documents d WHERE d.tenant = $1 AND d.collection = $2
             ORDER BY d.id LIMIT 1) IS NOT NULL
), ready AS MATERIALIZED (
    -- For this transaction, which is this statement: the scan goes on until enough rows pass.
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true) IS NOT NULL
        AND set_config('hnsw.ef_search', '200', true) IS NOT NULL AS ready
    FROM asked a WHERE a.dimension = $4
), nearest AS MATERIALIZED (
    SELECT n.id, n.distance FROM ready r CROSS JOIN LATERAL (
        SELECT d.id, d.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
        FROM holdfast.documents d
        WHERE r.ready AND d.tenant = $1 AND d.collection = $2
            AND d.dimension = /* dimension */ 2 AND (/* planned */ TRUE)
        ORDER BY /* near */ embedding
            OPERATOR(public.<=>) /* query */ (SELECT $3::real[]::public.vector)
        LIMIT $6
    ) n
), found AS MATERIALIZED (
    SELECT d.id, d.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM holdfast.documents d
    WHERE (d.tenant = $1 AND d.collection = $2) /* scope */ = TRUE AND (/* filter */ TRUE)
        AND (SELECT count(*) FROM nearest) < $5 AND (SELECT a.dimension = $4 FROM asked a)
), ranked AS MATERIALIZED (
    SELECT id, distance FROM (
        SELECT id, distance FROM nearest WHERE (SELECT count(*) FROM nearest) >= $5
        UNION ALL SELECT id, distance FROM found
    ) either
    ORDER BY distance, id LIMIT $6
)
SELECT a.dimension, a.indexed, f.id, f.content, f.metadata, f.embedding, f.subject
FROM asked a LEFT JOIN (
    SELECT d.id, d.content, d.metadata, public.vector_send(d.embedding) AS embedding, d.subject
    FROM ranked r
    JOIN holdfast.documents d ON d.tenant = $1 AND d.collection = $2 AND d.id = r.id
    WHERE r.distance <= COALESCE(
        (SELECT k.distance FROM ranked k LIMIT 1 OFFSET GREATEST($5 - 1, 0)), 2) + $7
) f ON true;

-- name: get
-- Documents by their ids.
SELECT id, content, metadata, public.vector_send(embedding) AS embedding, subject
FROM holdfast.documents
WHERE tenant = $1 AND collection = $2 AND id = ANY ($3::text[]);

-- name: delete
-- Remove documents, in the order of their ids; how many there were.
WITH doomed AS (
    SELECT id FROM holdfast.documents
    WHERE tenant = $1 AND collection = $2 AND id = ANY ($3::text[])
    ORDER BY id FOR UPDATE
), gone AS (
    DELETE FROM holdfast.documents d USING doomed
    WHERE d.tenant = $1 AND d.collection = $2 AND d.id = doomed.id
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: list_collections
-- The names of the collections that have documents, which begin with $2 and not with $3.
SELECT c.name FROM holdfast.collections c
WHERE c.tenant = $1 AND c.name >= $2 AND starts_with(c.name, $2)
    AND ($3 = '' OR NOT starts_with(c.name, $3))
    AND (SELECT d.id FROM holdfast.documents d WHERE d.tenant = $1 AND d.collection = c.name
         ORDER BY d.id LIMIT 1) IS NOT NULL
ORDER BY c.name;

-- name: delete_collection
-- Remove a collection; how many documents there were.
SELECT holdfast.delete_collection($1, $2);

-- name: purge_collections
-- Remove what is left of collections without documents, of all tenants: $1 at most.
SELECT holdfast.purge_collections($1);
