-- name: add_entities
-- Add or replace entities with their names.
SELECT holdfast.add_entities($1, $2, $3, $4, $5);

-- name: add_relationships
-- Add or replace relationships between entities that are there.
SELECT holdfast.add_relationships($1, $2, $3, $4, $5, $6);

-- name: walk
-- What is around an entity; $3 depth, $4 types or NULL, $5 along relationships, $6 against them,
-- $7 at most.
SELECT holdfast.walk($1, $2, $3, $4, $5, $6, $7);

-- name: delete_entity
-- Remove an entity and its relationships; whether it was there.
SELECT holdfast.delete_entity($1, $2);

-- name: delete_relationship
-- Remove a relationship.
DELETE FROM holdfast.relationships WHERE tenant = $1 AND id = $2 RETURNING true;

-- name: find_entities
-- The entities that have one of these names.
SELECT string_agg(e.body, ',' ORDER BY e.id) FROM holdfast.entities e
WHERE e.tenant = $1
    AND e.id IN (
        SELECT n.entity FROM holdfast.entity_names n
        WHERE n.tenant = $1 AND n.name = ANY ($2::text[]));

-- name: page
-- A page of the entities, after $2, in the ranges $3 to $4 and from $5 on.
SELECT string_agg(found.body, ',' ORDER BY found.id) FROM (
    (SELECT e.id, e.body FROM holdfast.entities e
     WHERE e.tenant = $1 AND e.id > $2 AND e.id >= $3 AND e.id < $4 ORDER BY e.id LIMIT $6)
    UNION ALL
    (SELECT e.id, e.body FROM holdfast.entities e
     WHERE e.tenant = $1 AND e.id > $2 AND e.id >= $5 ORDER BY e.id LIMIT $6)
    ORDER BY 1 LIMIT $6
) found;
