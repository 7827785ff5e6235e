-- version: 8
-- JSON objects under a namespace and a key.

-- Stores items and deletes those whose value is NULL, all or none; returns their new versions, 0 for
-- a deleted one. A namespace is the JSON text of its path. The items are sorted by namespace and
-- key, so that two calls lock them in the same order and never wait for each other in a circle.
CREATE OR REPLACE FUNCTION holdfast.put_items_about(
    in_tenant text, in_owner text, in_namespaces text[], in_keys text[], in_values text[],
    in_filterables text[], in_vectors text[], in_ttl_seconds double precision[],
    in_expected bigint[], in_subjects text[]
) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    labels text[];
    space bigint;
    made bigint[] := '{}';
    versions bigint[] := '{}';
    -- In variables: with the elements of the arrays in their place this function crashed Citus 14.0.1.
    this_key text;
    this_value text;
    this_filterable jsonb;
    this_vectors public.vector[];
    this_ttl double precision;
    this_expected bigint;
    this_subject text;
BEGIN
    FOR i IN 1 .. cardinality(in_keys) LOOP
        this_key := in_keys[i];
        this_value := in_values[i];
        this_filterable := in_filterables[i]::jsonb;
        this_vectors := in_vectors[i]::public.vector[];
        this_ttl := in_ttl_seconds[i];
        this_expected := in_expected[i];
        this_subject := in_subjects[i];
        IF i = 1 OR in_namespaces[i] <> in_namespaces[i - 1] THEN
            labels := holdfast.item_path(in_namespaces[i]);
            space := NULL;
        END IF;
        IF space IS NULL THEN
            space := holdfast.open_item_namespace(
                in_tenant, in_owner, labels, in_values[i] IS NOT NULL);
        END IF;
        IF space IS NULL AND cardinality(in_keys) > 1 THEN
            space := holdfast.open_item_namespace(in_tenant, in_owner, labels, true);
            made := made || space;
        END IF;
        versions := versions || holdfast.write_item(
            in_tenant, space, labels, this_key, this_value, this_filterable, this_vectors,
            this_ttl, this_expected, this_subject, cardinality(in_keys) > 1);
    END LOOP;
    FOREACH space IN ARRAY made LOOP
        -- It was made to lock absent items; this call may have put others there.
        DELETE FROM holdfast.item_namespaces n
        WHERE n.tenant = in_tenant AND n.number = space
          AND NOT EXISTS (SELECT FROM holdfast.items i
                          WHERE i.tenant = in_tenant AND i.namespace = space);
    END LOOP;
    RETURN versions;
END
$$;

-- Stores one item with at most one vector, or deletes it, as put_items_about does.
CREATE OR REPLACE FUNCTION holdfast.put_item(
    in_tenant text, in_owner text, in_path text[], in_path_key text, in_key text, in_value text,
    in_filterable jsonb, in_vector public.vector, in_ttl_seconds double precision,
    in_expected bigint, in_subject text
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    space bigint := (
        SELECT n.number FROM holdfast.item_namespaces n
        WHERE n.tenant = in_tenant AND n.owner = in_owner AND n.path_key = in_path_key);
BEGIN
    -- Most puts replace an item: while its row is locked, maintenance does not delete its namespace.
    PERFORM FROM holdfast.items s
    WHERE s.tenant = in_tenant AND s.namespace = space AND s.key = in_key FOR UPDATE;
    IF NOT FOUND THEN
        space := holdfast.open_item_namespace(
            in_tenant, in_owner, in_path, in_value IS NOT NULL);
    END IF;
    RETURN holdfast.write_item(
        in_tenant, space, in_path, in_key, in_value, in_filterable,
        CASE WHEN in_vector IS NULL THEN '{}'::public.vector[] ELSE ARRAY[in_vector] END,
        in_ttl_seconds, in_expected, in_subject, false);
END
$$;

-- Writes an item of a namespace; returns its new version, or 0 if it is deleted. A call of several items
-- locks absent ones too: else another call could put what this one has found absent, and lose what it
-- has put to the deletes that follow in this one.
CREATE OR REPLACE FUNCTION holdfast.write_item(
    in_tenant text, in_space bigint, in_labels text[], in_key text, in_value text,
    in_filterable jsonb, in_vectors public.vector[], in_ttl_seconds double precision,
    in_expected bigint, in_subject text, in_several boolean
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz;
    stored holdfast.items;
    actual bigint;
    until timestamptz;
BEGIN
    LOOP
        SELECT * INTO stored FROM holdfast.items s
        WHERE s.tenant = in_tenant AND s.namespace = in_space AND s.key = in_key FOR UPDATE;
        moment := holdfast.now();
        IF stored.expires_at <= moment THEN
            DELETE FROM holdfast.items s
            WHERE s.tenant = in_tenant AND s.namespace = in_space AND s.key = in_key;
            stored := NULL;
        END IF;
        actual := coalesce(stored.version, 0);
        IF in_expected <> actual THEN
            PERFORM holdfast.fail('HF003', 'an item is at another version', jsonb_build_object(
                'kind', 'item', 'key', array_to_string(in_labels || in_key, '/'),
                'expected', in_expected, 'actual', actual));
        END IF;
        IF in_value IS NULL THEN
            IF stored.version IS NULL AND in_several THEN
                -- A row that this transaction deletes again: a put of this item waits for it.
                INSERT INTO holdfast.items (
                    tenant, namespace, key, version, created_at, updated_at, vectors, value,
                    filterable)
                VALUES (in_tenant, in_space, in_key, 0, moment, moment, '{}', 'null', 'null')
                ON CONFLICT (tenant, namespace, key) DO NOTHING;
                CONTINUE WHEN NOT FOUND;
            END IF;
            DELETE FROM holdfast.items s
            WHERE s.tenant = in_tenant AND s.namespace = in_space AND s.key = in_key;
            RETURN 0;
        END IF;
        until := moment + make_interval(secs => in_ttl_seconds);
        actual := nextval('holdfast.item_versions');
        IF stored.version IS NOT NULL THEN
            UPDATE holdfast.items s SET
                version = actual, updated_at = moment, ttl_seconds = in_ttl_seconds,
                expires_at = until, vectors = in_vectors,
                value = in_value, filterable = in_filterable, subject = in_subject
            WHERE s.tenant = in_tenant AND s.namespace = in_space AND s.key = in_key;
            RETURN actual;
        END IF;
        INSERT INTO holdfast.items (
            tenant, namespace, key, version, created_at, updated_at, ttl_seconds, expires_at,
            vectors, value, filterable, subject)
        VALUES (in_tenant, in_space, in_key, actual, moment, moment, in_ttl_seconds, until,
                in_vectors, in_value, in_filterable, in_subject)
        ON CONFLICT (tenant, namespace, key) DO NOTHING;
        IF FOUND THEN
            RETURN actual;
        END IF;
        -- Somebody put the item in the meantime: look at it.
    END LOOP;
END
$$;

-- Starts the windows of items again and returns those that are there, each with its place in the
-- arrays. They are sorted by namespace and key, as in put_items_about, and for the same reason.
CREATE OR REPLACE FUNCTION holdfast.renew_items(
    in_tenant text, in_owner text, in_namespaces text[], in_keys text[]
) RETURNS TABLE (
    at int, value text, version bigint, created_at timestamptz, updated_at timestamptz,
    expires_at timestamptz, subject text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := holdfast.now();
    space bigint;
BEGIN
    FOR i IN 1 .. cardinality(in_keys) LOOP
        IF i = 1 OR in_namespaces[i] <> in_namespaces[i - 1] THEN
            SELECT n.number INTO space FROM holdfast.item_namespaces n
            WHERE n.tenant = in_tenant AND n.owner = in_owner
              AND n.path_key = holdfast.item_path_key(holdfast.item_path(in_namespaces[i]));
        END IF;
        RETURN QUERY
            UPDATE holdfast.items s
            SET expires_at = holdfast.seconds_after(moment, s.ttl_seconds)
            WHERE s.tenant = in_tenant AND s.namespace = space AND s.key = in_keys[i]
              AND s.expires_at > moment
            RETURNING i, s.value, s.version, s.created_at, s.updated_at, s.expires_at,
                s.subject;
        IF NOT FOUND THEN
            RETURN QUERY
                SELECT i, s.value, s.version, s.created_at, s.updated_at, s.expires_at,
                    s.subject
                FROM holdfast.items s
                WHERE s.tenant = in_tenant AND s.namespace = space AND s.key = in_keys[i]
                  AND s.expires_at IS NULL;
        END IF;
    END LOOP;
END
$$;

-- The labels of a namespace, which is the JSON text of its path.
CREATE OR REPLACE FUNCTION holdfast.item_path(in_namespace text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT array_agg(e.label ORDER BY e.at)
    FROM jsonb_array_elements_text(in_namespace::jsonb) WITH ORDINALITY AS e (label, at)
$$;

-- The text of a path, which sorts as the path: its labels, each with an end that sorts before all else.
CREATE OR REPLACE FUNCTION holdfast.item_path_key(the_path text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT string_agg(replace(p.label, E'\x01', E'\x01\x02') || E'\x01\x01', '' ORDER BY p.at)
    FROM unnest(the_path) WITH ORDINALITY AS p (label, at));

-- The number of a namespace, which is made if there is none and in_make. Maintenance does not delete
-- it before this transaction ends.
CREATE OR REPLACE FUNCTION holdfast.open_item_namespace(
    in_tenant text, in_owner text, in_path text[], in_make boolean
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    found_number bigint;
BEGIN
    LOOP
        SELECT n.number INTO found_number FROM holdfast.item_namespaces n
        WHERE n.tenant = in_tenant AND n.owner = in_owner
          AND n.path_key = holdfast.item_path_key(in_path) FOR KEY SHARE;
        IF FOUND OR NOT in_make THEN
            RETURN found_number;
        END IF;
        INSERT INTO holdfast.item_namespaces (tenant, owner, path)
        VALUES (in_tenant, in_owner, in_path)
        -- Two indexes say that there is one of a path.
        ON CONFLICT DO NOTHING
        RETURNING number INTO found_number;
        IF FOUND THEN
            RETURN found_number;
        END IF;
        -- Somebody made it in the meantime: look at it.
    END LOOP;
END
$$;

-- Deletes namespaces without items, of all tenants; how many there were.
CREATE OR REPLACE FUNCTION holdfast.purge_item_namespaces(in_limit int) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    one record;
    gone bigint := 0;
BEGIN
    FOR one IN
        SELECT n.tenant, n.number FROM holdfast.item_namespaces n
        WHERE NOT EXISTS (SELECT FROM holdfast.items i
                          WHERE i.tenant = n.tenant AND i.namespace = n.number)
        LIMIT in_limit FOR UPDATE SKIP LOCKED
    LOOP
        -- Looked at again, since a put may have ended just before the row was locked.
        DELETE FROM holdfast.item_namespaces n
        WHERE n.tenant = one.tenant AND n.number = one.number
          AND NOT EXISTS (SELECT FROM holdfast.items i
                          WHERE i.tenant = one.tenant AND i.namespace = one.number);
        gone := gone + CASE WHEN FOUND THEN 1 ELSE 0 END;
    END LOOP;
    RETURN gone;
END
$$;
