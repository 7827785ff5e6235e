-- version: 3
-- The graph.

-- Add or replace entities, all or none; named and the_names say who is found by what.
CREATE OR REPLACE FUNCTION holdfast.put_entities(
    the_tenant text, the_ids text[], the_bodies text[], named text[], the_names text[],
    the_subjects text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.entities (tenant, id, body, subject)
    SELECT the_tenant, i.id, i.body, i.subject
    FROM unnest(the_ids, the_bodies, the_subjects) AS i (id, body, subject)
    ORDER BY i.id COLLATE "C"
    ON CONFLICT (tenant, id) DO UPDATE SET body = excluded.body, subject = excluded.subject;
    DELETE FROM holdfast.entity_names n
    WHERE n.tenant = the_tenant AND n.entity = ANY (the_ids)
        AND NOT EXISTS (
            SELECT FROM unnest(named, the_names) AS i (entity, name)
            WHERE i.entity = n.entity AND i.name = n.name);
    INSERT INTO holdfast.entity_names (tenant, name, entity)
    SELECT the_tenant, i.name, i.entity FROM unnest(named, the_names) AS i (entity, name)
    ON CONFLICT DO NOTHING;
END
$$;

-- Add or replace relationships, all or none; their ends must be there, and stay until the commit.
CREATE OR REPLACE FUNCTION holdfast.put_relationships(
    the_tenant text, the_ids text[], the_sources text[], the_targets text[], the_types text[],
    the_bodies text[], the_subjects text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    missing text;
BEGIN
    PERFORM FROM holdfast.entities e
    WHERE e.tenant = the_tenant AND e.id = ANY (the_sources || the_targets)
    ORDER BY e.id FOR KEY SHARE;
    SELECT i.entity INTO missing
    FROM unnest(the_sources, the_targets) WITH ORDINALITY AS pair (source, target, at),
        LATERAL (VALUES (pair.source, 1), (pair.target, 2)) AS i (entity, place)
    WHERE NOT EXISTS (
        SELECT FROM holdfast.entities e WHERE e.tenant = the_tenant AND e.id = i.entity)
    ORDER BY pair.at, i.place LIMIT 1;
    IF FOUND THEN
        PERFORM holdfast.fail('HF002', 'an end is not there',
                              jsonb_build_object('kind', 'entity', 'key', missing));
    END IF;
    INSERT INTO holdfast.relationships (tenant, id, source, target, type, body, subject)
    SELECT the_tenant, i.id, s.number, t.number, i.type, i.body, i.subject
    FROM unnest(the_ids, the_sources, the_targets, the_types, the_bodies, the_subjects)
        AS i (id, source, target, type, body, subject)
    JOIN holdfast.entities s ON s.tenant = the_tenant AND s.id = i.source
    JOIN holdfast.entities t ON t.tenant = the_tenant AND t.id = i.target
    ORDER BY i.id COLLATE "C"
    ON CONFLICT (tenant, id) DO UPDATE SET
        source = excluded.source, target = excluded.target, type = excluded.type,
        body = excluded.body, subject = excluded.subject;
END
$$;

-- Remove an entity with its names and relationships; whether it was there.
CREATE OR REPLACE FUNCTION holdfast.delete_entity(the_tenant text, the_id text) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    the_number bigint;
BEGIN
    -- Whoever adds a relationship to it has finished by then, and the next one finds it gone.
    SELECT e.number INTO the_number FROM holdfast.entities e
    WHERE e.tenant = the_tenant AND e.id = the_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH doomed AS (
        SELECT r.id FROM holdfast.relationships r
        WHERE r.tenant = the_tenant AND (r.source = the_number OR r.target = the_number)
        ORDER BY r.id FOR UPDATE
    )
    DELETE FROM holdfast.relationships r USING doomed
    WHERE r.tenant = the_tenant AND r.id = doomed.id;
    DELETE FROM holdfast.entity_names n WHERE n.tenant = the_tenant AND n.entity = the_id;
    DELETE FROM holdfast.entities e WHERE e.tenant = the_tenant AND e.id = the_id;
    RETURN true;
END
$$;

-- The numbers that a walk reaches, each once, level by level with a 0 between two of them. If there
-- are more than so many it goes no further, and the last number is the first one too many.
CREATE OR REPLACE FUNCTION holdfast.numbers_reached(
    the_tenant text, start bigint, depth bigint, the_types text[], along boolean, against boolean,
    most bigint
) RETURNS bigint[]
LANGUAGE plpgsql STABLE
-- By index whatever the planner thinks, and no plan made for the parameters at hand.
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    found bigint[] := ARRAY[start];
    frontier bigint[] := found;
    room bigint := most;
    step bigint := 0;
BEGIN
    WHILE step < depth AND room > 0 LOOP
        step := step + 1;
        frontier := ARRAY(
            SELECT DISTINCT n.number FROM (
                SELECT r.target AS number FROM holdfast.relationships r
                WHERE along AND r.tenant = the_tenant AND r.source = ANY (frontier)
                    AND (the_types IS NULL OR r.type = ANY (the_types))
                UNION ALL
                SELECT r.source FROM holdfast.relationships r
                WHERE against AND r.tenant = the_tenant AND r.target = ANY (frontier)
                    AND (the_types IS NULL OR r.type = ANY (the_types))
            ) n
            WHERE n.number NOT IN (SELECT unnest(found))
        );
        EXIT WHEN frontier = '{}';
        IF cardinality(frontier) >= room THEN
            frontier := ARRAY(
                SELECT e.number FROM holdfast.entities e
                WHERE e.tenant = the_tenant AND e.number = ANY (frontier)
                ORDER BY e.id LIMIT room
            );
        END IF;
        found := found || 0::bigint || frontier;
        room := room - cardinality(frontier);
    END LOOP;
    RETURN found;
END
$$;

-- What is around an entity, as five texts: the numbers reached before the last step, level by level
-- with a 0 between two of them, where a number may stand again; the numbers of all entities; the
-- entities, in the same order; the relationships between them; and some text if there is more. One
-- text of all bodies is sent and read faster than a row for each.
CREATE OR REPLACE FUNCTION holdfast.walk(
    the_tenant text, start text, depth bigint, the_types text[], along boolean, against boolean,
    most bigint
) RETURNS text[]
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    frontier bigint[] := ARRAY(
        SELECT e.number FROM holdfast.entities e WHERE e.tenant = the_tenant AND e.id = start);
    found bigint[] := frontier;
    nearer bigint[];
    few bigint := LEAST(most, 1000);
    more text;
BEGIN
    -- To find out which numbers are new costs almost as much as to read them. It does not matter
    -- which are, as long as they are few and no more than are wanted, however often they stand here.
    FOR step IN 1 .. LEAST(depth, few) LOOP
        frontier := ARRAY(
            SELECT r.target FROM holdfast.relationships r
            WHERE along AND r.tenant = the_tenant AND r.source = ANY (frontier)
                AND (the_types IS NULL OR r.type = ANY (the_types))
            UNION ALL
            SELECT r.source FROM holdfast.relationships r
            WHERE against AND r.tenant = the_tenant AND r.target = ANY (frontier)
                AND (the_types IS NULL OR r.type = ANY (the_types))
            LIMIT few
        );
        EXIT WHEN frontier = '{}';
        nearer := found;
        found := found || 0::bigint || frontier;
        EXIT WHEN cardinality(found) > few;
    END LOOP;
    IF cardinality(found) > few THEN
        found := holdfast.numbers_reached(the_tenant, found[1], depth, the_types, along, against, most);
        IF cardinality(array_remove(found, 0)) > most THEN
            found := trim_array(found, 1);
            more := 'more';
        END IF;
        nearer := found;
    END IF;
    RETURN (
        SELECT ARRAY[
            array_to_string(nearer, ' '),
            string_agg(e.number::text, ' '),
            string_agg(e.body, ','),
            (
                SELECT string_agg(r.body, ',') FROM holdfast.relationships r
                WHERE r.tenant = the_tenant AND r.source = ANY (found)
                    -- Not a join: a planner that takes it for a small one compares all with all.
                    AND (r.target IN (SELECT unnest(found))) IS TRUE
                    AND (the_types IS NULL OR r.type = ANY (the_types))
            ),
            more
        ]
        FROM holdfast.entities e WHERE e.tenant = the_tenant AND e.number = ANY (found)
    );
END
$$;
