-- name: add_entities
-- Add or replace entities with their names.
SELECT holdfast.put_entities($1, $2, $3, $4, $5, $6);

-- name: add_relationships
-- Add or replace relationships between entities that are there.
SELECT holdfast.put_relationships($1, $2, $3, $4, $5, $6, $7);

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

-- name: edges
-- A page of the relationships of entity $2; $3 types or NULL, $4 along relationships, $5 against them,
-- after $6, $7 at most.
WITH start AS MATERIALIZED (
    SELECT e.number FROM holdfast.entities e WHERE e.tenant = $1 AND e.id = $2
), page AS MATERIALIZED (
    SELECT r.id FROM start s JOIN holdfast.relationships r ON r.source = s.number
    WHERE $4 AND r.tenant = $1 AND r.id > $6 AND ($3::text[] IS NULL OR r.type = ANY ($3))
    UNION
    SELECT r.id FROM start s JOIN holdfast.relationships r ON r.target = s.number
    WHERE $5 AND r.tenant = $1 AND r.id > $6 AND ($3::text[] IS NULL OR r.type = ANY ($3))
    ORDER BY 1 LIMIT $7
)
SELECT string_agg(r.body, ',' ORDER BY r.id)
FROM page p JOIN holdfast.relationships r ON r.tenant = $1 AND r.id = p.id;

-- name: degrees
-- How many relationships each of the entities $2 has, in order; a self-loop counts once.
SELECT array_agg(leaving.count + reaching.count ORDER BY given.at)
FROM unnest($2::text[]) WITH ORDINALITY AS given (id, at)
LEFT JOIN holdfast.entities e ON e.tenant = $1 AND e.id = given.id
CROSS JOIN LATERAL (
    SELECT count(*) FROM holdfast.relationships r WHERE r.tenant = $1 AND r.source = e.number
) leaving
CROSS JOIN LATERAL (
    SELECT count(*) FROM holdfast.relationships r
    WHERE r.tenant = $1 AND r.target = e.number AND r.source <> e.number
) reaching;
