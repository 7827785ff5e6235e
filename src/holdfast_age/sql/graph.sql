-- name: add_entities
-- Add or replace entities; $1 ids, $2 properties, both as agtype.
INSERT INTO holdfast_graph."Entity" (properties)
SELECT ag_catalog.agtype_in(i.properties::cstring)
FROM unnest($1::text[], $2::text[]) AS i (id, properties)
ORDER BY i.id COLLATE "C"
ON CONFLICT (
    (ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype]))
) DO UPDATE SET properties = excluded.properties;

-- name: add_relationships
-- Add or replace relationships between entities that are there, and keep their ends there until the
-- commit; else write nothing and say which end is missing. $1 ids, $2 sources, $3 targets and
-- $4 properties, all as agtype.
WITH given AS MATERIALIZED (
    SELECT i.id, i.source, i.target, i.properties, i.at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
        AS i (id, source, target, properties, at)
), wanted AS MATERIALIZED (
    SELECT n.name, n.name::cstring AS text, min(n.at) AS at
    FROM (SELECT source, at * 2 FROM given UNION ALL SELECT target, at * 2 + 1 FROM given)
        AS n (name, at)
    GROUP BY n.name
), ends AS MATERIALIZED (
    SELECT e.id, w.name
    FROM wanted w
    JOIN holdfast_graph."Entity" e
        ON ag_catalog.agtype_access_operator(
            VARIADIC ARRAY[e.properties, '"id"'::ag_catalog.agtype]) = ag_catalog.agtype_in(w.text)
    ORDER BY w.name COLLATE "C"
    FOR KEY SHARE OF e
), missing AS MATERIALIZED (
    SELECT w.name, w.at FROM wanted w
    WHERE NOT EXISTS (SELECT FROM ends WHERE ends.name = w.name)
    ORDER BY w.at LIMIT 1
), written AS (
    INSERT INTO holdfast_graph."Relationship" (start_id, end_id, properties)
    SELECT s.id, t.id, ag_catalog.agtype_in(g.properties::cstring)
    FROM given g JOIN ends s ON s.name = g.source JOIN ends t ON t.name = g.target
    WHERE NOT EXISTS (SELECT FROM missing)
    ORDER BY g.id COLLATE "C"
    ON CONFLICT (
        (ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype]))
    ) DO UPDATE SET
        start_id = excluded.start_id, end_id = excluded.end_id, properties = excluded.properties
)
SELECT name FROM missing;

-- name: walk
-- What is around an entity, breadth first, level by level in the order of ids: entities (kind 1)
-- from near to far, relationships between them (kind 2) by id, and a row (kind 3) if there is more.
-- $1 start as agtype, $2 depth, $3 types or NULL, $4 along relationships, $5 against, $6 at most.
WITH RECURSIVE walk AS (
    SELECT 0::bigint AS step, ARRAY[e.id] AS frontier, ARRAY[e.id] AS reached
    FROM holdfast_graph."Entity" e
    WHERE ag_catalog.agtype_access_operator(
        VARIADIC ARRAY[e.properties, '"id"'::ag_catalog.agtype])
            = ag_catalog.agtype_in($1::text::cstring)
    UNION ALL
    SELECT w.step + 1, beyond.ids, w.reached || beyond.ids
    FROM walk w CROSS JOIN LATERAL (
        SELECT ARRAY(
            SELECT e.id FROM (
                SELECT r.end_id AS id FROM holdfast_graph."Relationship" r
                WHERE $4 AND r.start_id = ANY (w.frontier) AND ($3::text[] IS NULL
                    OR ag_catalog.agtype_object_field_text(r.properties, 'type') = ANY ($3))
                UNION
                SELECT r.start_id FROM holdfast_graph."Relationship" r
                WHERE $5 AND r.end_id = ANY (w.frontier) AND ($3::text[] IS NULL
                    OR ag_catalog.agtype_object_field_text(r.properties, 'type') = ANY ($3))
                EXCEPT
                SELECT unnest(w.reached)
            ) n
            JOIN holdfast_graph."Entity" e ON e.id = n.id
            ORDER BY ag_catalog.agtype_object_field_text(e.properties, 'id') COLLATE "C"
            LIMIT $6::bigint - cardinality(w.reached) + 1
        ) AS ids
        OFFSET 0  -- once for each level, however often it is named
    ) beyond
    WHERE w.step < $2::bigint AND cardinality(w.reached) <= $6 AND cardinality(beyond.ids) > 0
), found AS MATERIALIZED (
    SELECT w.reached[:LEAST($6, 2147483647)::int] AS ids, cardinality(w.reached) > $6 AS truncated
    FROM walk w ORDER BY w.step DESC LIMIT 1
), entities AS MATERIALIZED (
    SELECT i.at, i.id, e.properties,
        ag_catalog.agtype_object_field_text(e.properties, 'id') AS name
    FROM found f, unnest(f.ids) WITH ORDINALITY AS i (id, at), LATERAL (
        SELECT e.properties FROM holdfast_graph."Entity" e WHERE e.id = i.id OFFSET 0
    ) e
)
SELECT 1 AS kind, e.at, e.name COLLATE "C" AS name,
    ag_catalog.agtype_out(e.properties)::text AS properties, NULL AS source, NULL AS target
FROM entities e
UNION ALL
SELECT 2, 0, ag_catalog.agtype_object_field_text(r.properties, 'id'),
    ag_catalog.agtype_out(r.properties)::text, s.name, t.name
FROM entities s
JOIN holdfast_graph."Relationship" r ON r.start_id = s.id
JOIN entities t ON t.id = r.end_id
WHERE $3::text[] IS NULL OR ag_catalog.agtype_object_field_text(r.properties, 'type') = ANY ($3)
UNION ALL
SELECT 3, 0, NULL, NULL, NULL, NULL FROM found f WHERE f.truncated
ORDER BY kind, at, name;

-- name: delete_entity
-- Remove an entity; its relationships go with it by their foreign keys.
DELETE FROM holdfast_graph."Entity"
WHERE ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype])
    = ag_catalog.agtype_in($1::text::cstring)
RETURNING true;

-- name: delete_relationship
-- Remove a relationship.
DELETE FROM holdfast_graph."Relationship"
WHERE ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype])
    = ag_catalog.agtype_in($1::text::cstring)
RETURNING true;

-- name: find_entities
-- The entities that have one of these names; $1 a list of them as agtype.
SELECT ag_catalog.agtype_out(e.properties)::text AS properties
FROM holdfast_graph."Entity" e
WHERE ag_catalog.agtype_access_operator(
    VARIADIC ARRAY[e.properties, '"_holdfast_names"'::ag_catalog.agtype])
        OPERATOR(ag_catalog.?|) ag_catalog.agtype_in($1::text::cstring)
ORDER BY ag_catalog.agtype_object_field_text(e.properties, 'id') COLLATE "C";

-- name: page
-- A page of the entities, after $1, in the ranges $2 to $3 and from $4 on.
SELECT ag_catalog.agtype_out(e.properties)::text AS properties
FROM holdfast_graph."Entity" e,
    LATERAL (SELECT ag_catalog.agtype_object_field_text(e.properties, 'id') COLLATE "C") AS of (id)
WHERE of.id > $1 AND ((of.id >= $2 AND of.id < $3) OR of.id >= $4::text)
ORDER BY of.id LIMIT $5;

-- name: edges
-- A page of the relationships of entity $1; $2 types or NULL, $3 along relationships, $4 against,
-- after $5, $6 at most.
WITH start AS MATERIALIZED (
    SELECT e.id FROM holdfast_graph."Entity" e
    WHERE ag_catalog.agtype_access_operator(
        VARIADIC ARRAY[e.properties, '"id"'::ag_catalog.agtype])
            = ag_catalog.agtype_in($1::text::cstring)
), beside AS MATERIALIZED (
    SELECT r.id FROM start s JOIN holdfast_graph."Relationship" r ON r.start_id = s.id WHERE $3
    UNION
    SELECT r.id FROM start s JOIN holdfast_graph."Relationship" r ON r.end_id = s.id WHERE $4
)
SELECT ag_catalog.agtype_out(r.properties)::text AS properties,
    ag_catalog.agtype_object_field_text(a.properties, 'id') AS source,
    ag_catalog.agtype_object_field_text(b.properties, 'id') AS target
FROM beside
JOIN holdfast_graph."Relationship" r ON r.id = beside.id
JOIN holdfast_graph."Entity" a ON a.id = r.start_id
JOIN holdfast_graph."Entity" b ON b.id = r.end_id,
    LATERAL (SELECT ag_catalog.agtype_object_field_text(r.properties, 'id') COLLATE "C") AS of (id)
WHERE of.id > $5 AND ($2::text[] IS NULL
    OR ag_catalog.agtype_object_field_text(r.properties, 'type') = ANY ($2))
ORDER BY of.id LIMIT $6;

-- name: degrees
-- How many relationships each of the entities $1 has, in order; a self-loop counts once.
SELECT leaving.count + reaching.count AS count
FROM unnest($1::text[]) WITH ORDINALITY AS given (id, at)
LEFT JOIN holdfast_graph."Entity" e
    ON ag_catalog.agtype_access_operator(
        VARIADIC ARRAY[e.properties, '"id"'::ag_catalog.agtype])
            = ag_catalog.agtype_in(given.id::cstring)
CROSS JOIN LATERAL (
    SELECT count(*) FROM holdfast_graph."Relationship" r WHERE r.start_id = e.id
) leaving
CROSS JOIN LATERAL (
    SELECT count(*) FROM holdfast_graph."Relationship" r
    WHERE r.end_id = e.id AND r.start_id <> e.id
) reaching
ORDER BY given.at;
