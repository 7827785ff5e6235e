-- version: 3
-- Documents with vectors.

-- What a condition on a path looks at: the elements of a list, else the value itself, if any.
CREATE OR REPLACE FUNCTION holdfast.json_items(found jsonb) RETURNS SETOF jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT jsonb_array_elements(
        CASE jsonb_typeof(found) WHEN 'array' THEN found ELSE jsonb_build_array(found) END)
    WHERE found IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION holdfast.json_number(item jsonb) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE jsonb_typeof(item) WHEN 'number' THEN item::numeric END $$;

CREATE OR REPLACE FUNCTION holdfast.json_text(item jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE jsonb_typeof(item) WHEN 'string' THEN item #>> '{}' END $$;

-- The dimension of a collection for a writer, which holds it until its transaction ends: the first
-- vector's, unless there are documents already.
CREATE OR REPLACE FUNCTION holdfast.hold_dimension(the_tenant text, the_collection text, wanted int)
RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    fixed int;
BEGIN
    LOOP
        SELECT c.dimension INTO fixed FROM holdfast.collections c
        WHERE c.tenant = the_tenant AND c.name = the_collection AND c.dimension = wanted FOR SHARE;
        IF FOUND THEN
            RETURN fixed;
        END IF;
        SELECT c.dimension INTO fixed FROM holdfast.collections c
        WHERE c.tenant = the_tenant AND c.name = the_collection;
        IF NOT FOUND THEN
            INSERT INTO holdfast.collections (tenant, name, dimension)
            VALUES (the_tenant, the_collection, wanted) ON CONFLICT DO NOTHING;
        ELSE
            -- Not while holding a share of it: two who want more would wait for each other.
            PERFORM FROM holdfast.collections c
            WHERE c.tenant = the_tenant AND c.name = the_collection AND c.dimension = fixed
            FOR UPDATE;
            IF FOUND THEN
                PERFORM FROM holdfast.documents d
                WHERE d.tenant = the_tenant AND d.collection = the_collection
                ORDER BY d.id LIMIT 1;
                IF FOUND THEN
                    RETURN fixed;
                END IF;
                UPDATE holdfast.collections c SET dimension = wanted, indexed = false
                WHERE c.tenant = the_tenant AND c.name = the_collection;
                RETURN wanted;
            END IF;
        END IF;
    END LOOP;
END
$$;

-- Add or replace a batch, all or nothing; the_numbers are the embeddings one after the other.
-- Documents are written in the order of their ids, so that two batches never wait for each other.
CREATE OR REPLACE FUNCTION holdfast.put_documents(
    the_tenant text, the_collection text, replacing boolean, the_ids text[], the_contents text[],
    the_metadata text[], the_filterables text[], the_dimensions int[], the_numbers real[],
    the_subjects text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    fixed int := holdfast.hold_dimension(the_tenant, the_collection, the_dimensions[1]);
    taken text;
    given int;
    place bigint;
BEGIN
    IF NOT fixed = ALL (the_dimensions) THEN
        SELECT i.id INTO taken
        FROM unnest(the_ids) WITH ORDINALITY AS i (id, at)
        JOIN holdfast.documents d
            ON d.tenant = the_tenant AND d.collection = the_collection AND d.id = i.id
        WHERE NOT replacing ORDER BY i.at LIMIT 1;
        IF FOUND THEN
            PERFORM holdfast.fail('HF007', 'an id is taken',
                                  jsonb_build_object('kind', 'document', 'key', taken));
        END IF;
        SELECT i.dimension, i.at INTO given, place
        FROM unnest(the_dimensions) WITH ORDINALITY AS i (dimension, at)
        WHERE i.dimension <> fixed ORDER BY i.at LIMIT 1;
        PERFORM holdfast.fail(
            'HF006', format('has dimension %s, but the collection''s is %s', given, fixed),
            jsonb_build_object('field', format('documents[%s].embedding', place - 1)));
    END IF;

    -- An id that is taken, be it since a moment ago, is not among the written.
    WITH written AS (
        INSERT INTO holdfast.documents AS d
            (tenant, collection, id, dimension, embedding, content, metadata, filterable, subject)
        SELECT the_tenant, the_collection, i.id, fixed,
               the_numbers[(i.at - 1) * fixed + 1 : i.at * fixed]::public.vector,
               i.content, i.metadata, i.filterable::jsonb, i.subject
        FROM unnest(the_ids, the_contents, the_metadata, the_filterables, the_subjects)
            WITH ORDINALITY AS i (id, content, metadata, filterable, subject, at)
        ORDER BY i.id COLLATE "C"
        ON CONFLICT (tenant, collection, id) DO UPDATE SET
            embedding = excluded.embedding, content = excluded.content,
            metadata = excluded.metadata, filterable = excluded.filterable,
            subject = excluded.subject
        WHERE replacing
        RETURNING d.id
    )
    SELECT i.id INTO taken
    FROM unnest(the_ids) WITH ORDINALITY AS i (id, at)
    WHERE i.id NOT IN (SELECT w.id FROM written w)
    ORDER BY i.at LIMIT 1;
    IF FOUND THEN
        PERFORM holdfast.fail('HF007', 'an id is taken',
                              jsonb_build_object('kind', 'document', 'key', taken));
    END IF;
END
$$;

-- Remove a collection with its documents; how many there were.
CREATE OR REPLACE FUNCTION holdfast.delete_collection(the_tenant text, the_collection text) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    gone bigint;
BEGIN
    -- Nobody writes to it from here on; who deletes documents does so in the order of their ids.
    PERFORM FROM holdfast.collections c
    WHERE c.tenant = the_tenant AND c.name = the_collection FOR UPDATE;
    PERFORM FROM holdfast.documents d
    WHERE d.tenant = the_tenant AND d.collection = the_collection ORDER BY d.id FOR UPDATE;
    DELETE FROM holdfast.documents d
    WHERE d.tenant = the_tenant AND d.collection = the_collection;
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM holdfast.collections c
    WHERE c.tenant = the_tenant AND c.name = the_collection;
    RETURN gone;
END
$$;

-- Remove the rows of collections without documents, of all tenants; how many there were.
CREATE OR REPLACE FUNCTION holdfast.purge_collections(at_most int) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    one record;
    gone bigint := 0;
BEGIN
    FOR one IN
        SELECT c.tenant, c.name FROM holdfast.collections c
        WHERE (SELECT d.id FROM holdfast.documents d
               WHERE d.tenant = c.tenant AND d.collection = c.name ORDER BY d.id LIMIT 1) IS NULL
        LIMIT at_most FOR UPDATE SKIP LOCKED
    LOOP
        -- Looked at again, since a writer may have finished just before the row was locked.
        DELETE FROM holdfast.collections c
        WHERE c.tenant = one.tenant AND c.name = one.name
            AND (SELECT d.id FROM holdfast.documents d
                 WHERE d.tenant = c.tenant AND d.collection = c.name ORDER BY d.id LIMIT 1) IS NULL;
        gone := gone + CASE WHEN FOUND THEN 1 ELSE 0 END;
    END LOOP;
    RETURN gone;
END
$$;

-- The ids of the documents of a collection that hold one of some JSON objects, which contain the tenant
-- and the collection. It runs as the owner of the schema: below a policy the index on the metadata does
-- not serve, since what compares JSON may tell what it is given. Whoever asks gets the ids of the tenant
-- for whom the statement runs, and reads the documents below its policy.
CREATE OR REPLACE FUNCTION holdfast.documents_holding(
    the_tenant text, the_collection text, the_parts text[])
RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT d.id FROM unnest(the_parts::jsonb[]) AS p (part)
    CROSS JOIN LATERAL (
        SELECT d.id FROM holdfast.documents d
        WHERE d.filterable @> p.part
            AND (d.tenant = the_tenant AND d.collection = the_collection) IS TRUE
    ) d
    WHERE the_tenant = current_setting('holdfast.tenant', true)
$$;
REVOKE ALL ON FUNCTION holdfast.documents_holding(text, text, text[]) FROM PUBLIC;
