-- name: add_entities
-- Add or replace entities with their names.
SELECT holdfast.add_entities($1, $2, $3, $4, $5, $6);

-- name: add_relationships
-- Add or replace relationships between entities that are there.
SELECT holdfast.add_relationships($1, $2, $3, $4, $5, $6);

-- name: walk
-- What is around an entity, breadth first, level by level in the order of ids: entities (kind 1)
-- from near to far, relationships between them (kind 2) by id, and a row (kind 3) if there is more.
-- $3 depth, $4 types or NULL, $5 along relationships, $6 against them, $7 at most.
WITH RECURSIVE walk AS (
    SELECT 0::bigint AS step, ARRAY[e.id] AS frontier, ARRAY[e.id] AS reached
    FROM holdfast.entities e WHERE e.tenant = $1 AND e.id = $2
    UNION ALL
    SELECT w.step + 1, beyond.ids, w.reached || beyond.ids
    FROM walk w CROSS JOIN LATERAL (
        SELECT ARRAY(
            SELECT n.id FROM (
                SELECT r.target AS id FROM holdfast.relationships r
                WHERE $5 AND r.tenant = $1 AND r.source = ANY (w.frontier)
                    AND ($4::text[] IS NULL OR r.type = ANY ($4))
                UNION
                SELECT r.source FROM holdfast.relationships r
                WHERE $6 AND r.tenant = $1 AND r.target = ANY (w.frontier)
                    AND ($4::text[] IS NULL OR r.type = ANY ($4))
                EXCEPT
                SELECT unnest(w.reached)
            ) n
            ORDER BY n.id LIMIT $7::bigint - cardinality(w.reached) + 1
        ) AS ids
        OFFSET 0  -- once for each level, however often it is named
    ) beyond
    WHERE w.step < $3::bigint AND cardinality(w.reached) <= $7 AND cardinality(beyond.ids) > 0
), found AS MATERIALIZED (
    SELECT w.reached[:LEAST($7, 2147483647)::int] AS ids, cardinality(w.reached) > $7 AS truncated
    FROM walk w ORDER BY w.step DESC LIMIT 1
)
SELECT 1 AS kind, i.at, e.id, e.label, e.properties, NULL AS source, NULL AS target
FROM (
    -- By their keys, however small the planner thinks the table is.
    SELECT e.id, e.label, e.properties FROM holdfast.entities e
    WHERE e.tenant = $1 AND e.id = ANY ((SELECT f.ids FROM found f)::text[]) OFFSET 0
) e
JOIN (SELECT i.id, i.at FROM found f, unnest(f.ids) WITH ORDINALITY AS i (id, at)) i ON i.id = e.id
UNION ALL
SELECT 2, 0, r.id, r.type, r.properties, r.source, r.target
FROM holdfast.relationships r
WHERE r.tenant = $1 AND r.source = ANY ((SELECT f.ids FROM found f)::text[])
    AND r.target = ANY ((SELECT f.ids FROM found f)::text[])
    AND ($4::text[] IS NULL OR r.type = ANY ($4))
UNION ALL
SELECT 3, 0, NULL, NULL, NULL, NULL, NULL FROM found f WHERE f.truncated
ORDER BY kind, at, id;

-- name: delete_entity
-- Remove an entity and its relationships; whether it was there.
SELECT holdfast.delete_entity($1, $2);

-- name: delete_relationship
-- Remove a relationship.
DELETE FROM holdfast.relationships WHERE tenant = $1 AND id = $2 RETURNING true;

-- name: find_entities
-- The entities that have one of these names.
SELECT e.id, e.label, e.properties FROM holdfast.entities e
WHERE e.tenant = $1
    AND e.id IN (
        SELECT n.entity FROM holdfast.entity_names n
        WHERE n.tenant = $1 AND n.name = ANY ($2::text[]))
ORDER BY e.id;
