-- What makes a graph of AGE keep the promises of a GraphStore; each step may run again.
-- holdfast_graph stands for the graph's name.

-- Older versions of AGE make no indexes of their own.
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_index i
        WHERE i.indrelid = 'holdfast_graph."Entity"'::regclass AND i.indkey::text = '1'
            AND i.indisunique AND i.indpred IS NULL
    ) THEN
        ALTER TABLE holdfast_graph."Entity" ADD PRIMARY KEY (id);
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_index i
        WHERE i.indrelid = 'holdfast_graph."Relationship"'::regclass AND i.indkey[0] = 2
    ) THEN
        CREATE INDEX ON holdfast_graph."Relationship" (start_id);
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_index i
        WHERE i.indrelid = 'holdfast_graph."Relationship"'::regclass AND i.indkey[0] = 3
    ) THEN
        CREATE INDEX ON holdfast_graph."Relationship" (end_id);
    END IF;
END
$$;

-- An id is there once, and n.id = $id in Cypher finds it by the same index.
CREATE UNIQUE INDEX IF NOT EXISTS holdfast_entity_id ON holdfast_graph."Entity"
    (ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype]));
CREATE UNIQUE INDEX IF NOT EXISTS holdfast_relationship_id ON holdfast_graph."Relationship"
    (ag_catalog.agtype_access_operator(VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype]));
CREATE INDEX IF NOT EXISTS holdfast_entity_names ON holdfast_graph."Entity" USING gin (
    ag_catalog.agtype_access_operator(
        VARIADIC ARRAY[properties, '"_holdfast_names"'::ag_catalog.agtype]));

-- What Cypher writes is an entity or a relationship too: its id and its label or type are text.
ALTER TABLE holdfast_graph."Entity"
    DROP CONSTRAINT IF EXISTS holdfast_is_entity,
    ADD CONSTRAINT holdfast_is_entity CHECK ((
        ag_catalog.agtype_out(ag_catalog.agtype_access_operator(
            VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype]))::text LIKE '"%'
        AND ag_catalog.agtype_out(ag_catalog.agtype_access_operator(
            VARIADIC ARRAY[properties, '"label"'::ag_catalog.agtype]))::text LIKE '"%'
    ) IS TRUE);

-- A relationship never outlives its ends, whoever deletes them and however many write at once.
ALTER TABLE holdfast_graph."Relationship"
    DROP CONSTRAINT IF EXISTS holdfast_is_relationship,
    DROP CONSTRAINT IF EXISTS holdfast_source,
    DROP CONSTRAINT IF EXISTS holdfast_target,
    ADD CONSTRAINT holdfast_is_relationship CHECK ((
        ag_catalog.agtype_out(ag_catalog.agtype_access_operator(
            VARIADIC ARRAY[properties, '"id"'::ag_catalog.agtype]))::text LIKE '"%'
        AND ag_catalog.agtype_out(ag_catalog.agtype_access_operator(
            VARIADIC ARRAY[properties, '"type"'::ag_catalog.agtype]))::text LIKE '"%'
    ) IS TRUE),
    ADD CONSTRAINT holdfast_source FOREIGN KEY (start_id)
        REFERENCES holdfast_graph."Entity" (id) ON DELETE CASCADE,
    ADD CONSTRAINT holdfast_target FOREIGN KEY (end_id)
        REFERENCES holdfast_graph."Entity" (id) ON DELETE CASCADE;
