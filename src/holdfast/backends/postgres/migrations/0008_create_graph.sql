-- The knowledge graph: entities, the names they are found by, and relationships between them.

-- properties are exact, as the codec's text.
CREATE TABLE holdfast.entities (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    properties text NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE holdfast.entity_names (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    entity text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name, entity)
);
CREATE INDEX entity_names_of_entity ON holdfast.entity_names (tenant, entity);

CREATE TABLE holdfast.relationships (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    properties text NOT NULL,
    PRIMARY KEY (tenant, id)
);
-- A walk in either direction reads the index alone.
CREATE INDEX relationships_leaving ON holdfast.relationships (tenant, source)
    INCLUDE (target, type);
CREATE INDEX relationships_reaching ON holdfast.relationships (tenant, target)
    INCLUDE (source, type);

-- Locks are taken in one order everywhere: entities by id, then relationships by id.

-- Add or replace entities, all or none; named and the_names say who is found by what.
CREATE FUNCTION holdfast.add_entities(
    the_tenant text, the_ids text[], the_labels text[], the_properties text[],
    named text[], the_names text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.entities (tenant, id, label, properties)
    SELECT the_tenant, i.id, i.label, i.properties
    FROM unnest(the_ids, the_labels, the_properties) AS i (id, label, properties)
    ORDER BY i.id COLLATE "C"
    ON CONFLICT (tenant, id) DO UPDATE SET
        label = excluded.label, properties = excluded.properties;
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
CREATE FUNCTION holdfast.add_relationships(
    the_tenant text, the_ids text[], the_sources text[], the_targets text[], the_types text[],
    the_properties text[]
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
    INSERT INTO holdfast.relationships (tenant, id, source, target, type, properties)
    SELECT the_tenant, i.*
    FROM unnest(the_ids, the_sources, the_targets, the_types, the_properties)
        AS i (id, source, target, type, properties)
    ORDER BY i.id COLLATE "C"
    ON CONFLICT (tenant, id) DO UPDATE SET
        source = excluded.source, target = excluded.target, type = excluded.type,
        properties = excluded.properties;
END
$$;

-- Remove an entity with its names and relationships; whether it was there.
CREATE FUNCTION holdfast.delete_entity(the_tenant text, the_id text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    -- Whoever adds a relationship to it has finished by then, and the next one finds it gone.
    PERFORM FROM holdfast.entities e WHERE e.tenant = the_tenant AND e.id = the_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH doomed AS (
        SELECT r.id FROM holdfast.relationships r
        WHERE r.tenant = the_tenant AND (r.source = the_id OR r.target = the_id)
        ORDER BY r.id FOR UPDATE
    )
    DELETE FROM holdfast.relationships r USING doomed
    WHERE r.tenant = the_tenant AND r.id = doomed.id;
    DELETE FROM holdfast.entity_names n WHERE n.tenant = the_tenant AND n.entity = the_id;
    DELETE FROM holdfast.entities e WHERE e.tenant = the_tenant AND e.id = the_id;
    RETURN true;
END
$$;
