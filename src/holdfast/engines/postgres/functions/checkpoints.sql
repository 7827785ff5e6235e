-- version: 3
-- Checkpoints of graphs that run in steps.

-- The key of a thread to write to, which is made if there is none; its window starts again. Who
-- deletes or prunes the thread waits until this transaction ends, and with in_alone so does
-- everybody else who wants it alone.
CREATE OR REPLACE FUNCTION holdfast.open_thread(
    in_tenant text, in_id text, in_ttl_seconds double precision, in_alone boolean
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := holdfast.now();
    stored holdfast.threads;
    made bigint;
BEGIN
    LOOP
        IF in_alone THEN
            SELECT * INTO stored FROM holdfast.threads t
            WHERE t.tenant = in_tenant AND t.id = in_id
              AND (t.expires_at IS NULL OR t.expires_at > moment) FOR NO KEY UPDATE;
        ELSE
            SELECT * INTO stored FROM holdfast.threads t
            WHERE t.tenant = in_tenant AND t.id = in_id
              AND (t.expires_at IS NULL OR t.expires_at > moment) FOR KEY SHARE;
        END IF;
        IF FOUND THEN
            IF coalesce(in_ttl_seconds, stored.ttl_seconds) IS NOT NULL THEN
                UPDATE holdfast.threads t SET
                    ttl_seconds = coalesce(in_ttl_seconds, t.ttl_seconds),
                    expires_at = holdfast.seconds_after(
                        moment, coalesce(in_ttl_seconds, t.ttl_seconds))
                WHERE t.tenant = in_tenant AND t.id = in_id;
            END IF;
            RETURN stored.key;
        END IF;
        -- Not locked yet: two who both share it could not delete it.
        DELETE FROM holdfast.threads t
        WHERE t.tenant = in_tenant AND t.id = in_id AND t.expires_at <= moment;
        INSERT INTO holdfast.threads (tenant, id, ttl_seconds, expires_at)
        VALUES (in_tenant, in_id, in_ttl_seconds, moment + make_interval(secs => in_ttl_seconds))
        ON CONFLICT (tenant, id) DO NOTHING
        RETURNING key INTO made;
        IF FOUND THEN
            RETURN made;
        END IF;
        -- Somebody made it in the meantime: look at it.
    END LOOP;
END
$$;

-- Stores a checkpoint and the values of the channels that changed. With in_expected, that must be the
-- newest checkpoint of the namespace, or this one must be it already, with that parent: a retry.
CREATE OR REPLACE FUNCTION holdfast.put_checkpoint(
    in_tenant text, in_thread text, in_namespace text, in_id text, in_parent text, in_run text,
    in_kind text, in_body bytea, in_metadata_kind text, in_metadata bytea, in_labels jsonb,
    in_versions jsonb, in_channels text[], in_channel_versions text[], in_kinds text[],
    in_values bytea[], in_expected text, in_ttl_seconds double precision
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    opened bigint := holdfast.open_thread(
        in_tenant, in_thread, in_ttl_seconds, in_expected IS NOT NULL);
    newest text;
    above text;
BEGIN
    IF in_expected IS NOT NULL THEN
        SELECT c.id, c.parent INTO newest, above FROM holdfast.checkpoints c
        WHERE c.tenant = in_tenant AND c.thread_key = opened AND c.namespace = in_namespace
        ORDER BY c.id DESC LIMIT 1;
        IF coalesce(newest, '') <> in_expected
           AND (newest IS DISTINCT FROM in_id OR coalesce(above, '') <> in_expected) THEN
            PERFORM holdfast.fail('HF008', 'the newest checkpoint is another', jsonb_build_object(
                'key', in_thread, 'expected', in_expected, 'newest', coalesce(newest, '')));
        END IF;
    END IF;
    INSERT INTO holdfast.checkpoint_values AS v (
        tenant, thread_key, namespace, channel, version, kind, data)
    SELECT in_tenant, opened, in_namespace, n.channel, n.version, n.kind, n.data
    FROM unnest(in_channels, in_channel_versions, in_kinds, in_values)
        AS n (channel, version, kind, data)
    ON CONFLICT (tenant, thread_key, namespace, channel, version)
        DO UPDATE SET kind = excluded.kind, data = excluded.data;
    INSERT INTO holdfast.checkpoints AS c (
        tenant, thread_key, namespace, id, parent, run, kind, body, metadata_kind, metadata,
        labels, versions)
    VALUES (in_tenant, opened, in_namespace, in_id, in_parent, in_run, in_kind, in_body,
            in_metadata_kind, in_metadata, in_labels, in_versions)
    ON CONFLICT (tenant, thread_key, namespace, id) DO UPDATE SET
        parent = excluded.parent, run = excluded.run, kind = excluded.kind, body = excluded.body,
        metadata_kind = excluded.metadata_kind, metadata = excluded.metadata,
        labels = excluded.labels, versions = excluded.versions;
END
$$;

-- Stores writes of a checkpoint: those with an index below zero replace earlier ones.
CREATE OR REPLACE FUNCTION holdfast.put_checkpoint_writes(
    in_tenant text, in_thread text, in_namespace text, in_id text, in_tasks text[],
    in_indexes int[], in_paths text[], in_channels text[], in_kinds text[], in_values bytea[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    opened bigint := holdfast.open_thread(in_tenant, in_thread, NULL, false);
BEGIN
    INSERT INTO holdfast.checkpoint_writes AS w (
        tenant, thread_key, namespace, id, task, index, path, channel, kind, data)
    SELECT in_tenant, opened, in_namespace, in_id, n.task, n.index, n.path, n.channel, n.kind, n.data
    FROM unnest(in_tasks, in_indexes, in_paths, in_channels, in_kinds, in_values)
        AS n (task, index, path, channel, kind, data)
    ON CONFLICT (tenant, thread_key, namespace, id, task, index) DO UPDATE SET
        path = excluded.path, channel = excluded.channel, kind = excluded.kind, data = excluded.data
    WHERE excluded.index < 0;
END
$$;

-- Deletes checkpoints with their writes, and the values that no other checkpoint names. The threads
-- are locked.
CREATE OR REPLACE FUNCTION holdfast.drop_checkpoints(
    in_tenant text, in_keys bigint[], in_namespaces text[], in_ids text[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    dropped bigint;
BEGIN
    DELETE FROM holdfast.checkpoints c
    USING unnest(in_keys, in_namespaces, in_ids) AS g (key, namespace, id)
    WHERE c.tenant = in_tenant AND c.thread_key = g.key AND c.namespace = g.namespace
      AND c.id = g.id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    DELETE FROM holdfast.checkpoint_writes w
    USING unnest(in_keys, in_namespaces, in_ids) AS g (key, namespace, id)
    WHERE w.tenant = in_tenant AND w.thread_key = g.key AND w.namespace = g.namespace
      AND w.id = g.id;
    DELETE FROM holdfast.checkpoint_values v
    USING (SELECT DISTINCT g.key, g.namespace
           FROM unnest(in_keys, in_namespaces) AS g (key, namespace)) AS touched
    WHERE v.tenant = in_tenant AND v.thread_key = touched.key AND v.namespace = touched.namespace
      AND NOT EXISTS (
          SELECT FROM holdfast.checkpoints c, jsonb_each_text(c.versions) AS named
          WHERE c.tenant = in_tenant AND c.thread_key = v.thread_key
            AND c.namespace = v.namespace AND named.key = v.channel AND named.value = v.version);
    RETURN dropped;
END
$$;

-- Deletes the checkpoints of runs, in threads whose ids begin in one way and not in another.
CREATE OR REPLACE FUNCTION holdfast.delete_runs(
    in_tenant text, in_runs text[], in_begins text, in_begins_not text
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    locked bigint[];
    dropped bigint;
BEGIN
    SELECT array_agg(l.key) INTO locked FROM (
        SELECT t.key FROM holdfast.threads t
        WHERE t.tenant = in_tenant AND starts_with(t.id, in_begins)
          AND (in_begins_not = '' OR NOT starts_with(t.id, in_begins_not))
          AND (t.expires_at IS NULL OR t.expires_at > holdfast.now())
          AND t.key IN (SELECT c.thread_key FROM holdfast.checkpoints c
                        WHERE c.tenant = in_tenant AND c.run = ANY (in_runs))
        ORDER BY t.key FOR UPDATE
    ) l;
    SELECT holdfast.drop_checkpoints(
        in_tenant, array_agg(c.thread_key), array_agg(c.namespace), array_agg(c.id))
    INTO dropped FROM holdfast.checkpoints c
    WHERE c.tenant = in_tenant AND c.run = ANY (in_runs) AND c.thread_key = ANY (locked)
    HAVING count(*) > 0;
    RETURN coalesce(dropped, 0);
END
$$;

-- Copies what the target does not have; returns how many checkpoints.
CREATE OR REPLACE FUNCTION holdfast.copy_thread(
    in_tenant text, in_source text, in_target text
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    source holdfast.threads;
    target bigint;
    copied bigint;
BEGIN
    SELECT * INTO source FROM holdfast.threads t
    WHERE t.tenant = in_tenant AND t.id = in_source
      AND (t.expires_at IS NULL OR t.expires_at > holdfast.now()) FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    target := holdfast.open_thread(in_tenant, in_target, source.ttl_seconds, false);
    INSERT INTO holdfast.checkpoint_writes (
        tenant, thread_key, namespace, id, task, index, path, channel, kind, data)
    SELECT w.tenant, target, w.namespace, w.id, w.task, w.index, w.path, w.channel, w.kind, w.data
    FROM holdfast.checkpoint_writes w WHERE w.tenant = in_tenant AND w.thread_key = source.key
    ON CONFLICT DO NOTHING;
    INSERT INTO holdfast.checkpoint_values (
        tenant, thread_key, namespace, channel, version, kind, data)
    SELECT v.tenant, target, v.namespace, v.channel, v.version, v.kind, v.data
    FROM holdfast.checkpoint_values v WHERE v.tenant = in_tenant AND v.thread_key = source.key
    ON CONFLICT DO NOTHING;
    INSERT INTO holdfast.checkpoints (
        tenant, thread_key, namespace, id, parent, run, kind, body, metadata_kind, metadata,
        labels, versions)
    SELECT c.tenant, target, c.namespace, c.id, c.parent, c.run, c.kind, c.body, c.metadata_kind,
           c.metadata, c.labels, c.versions
    FROM holdfast.checkpoints c WHERE c.tenant = in_tenant AND c.thread_key = source.key
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS copied = ROW_COUNT;
    RETURN copied;
END
$$;

-- Deletes all but the newest checkpoints of each namespace and the ancestors that they need: up to
-- where each channel has a value that has none at its own version, but writes.
CREATE OR REPLACE FUNCTION holdfast.prune_threads(
    in_tenant text, in_threads text[], in_keep bigint
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    locked bigint[];
    dropped bigint;
BEGIN
    SELECT array_agg(l.key) INTO locked FROM (
        SELECT t.key FROM holdfast.threads t
        WHERE t.tenant = in_tenant AND t.id = ANY (in_threads)
          AND (t.expires_at IS NULL OR t.expires_at > holdfast.now())
        ORDER BY t.key FOR UPDATE
    ) l;
    WITH RECURSIVE numbered AS (
        SELECT c.*, row_number() OVER (
            PARTITION BY c.thread_key, c.namespace ORDER BY c.id DESC) AS place
        FROM holdfast.checkpoints c WHERE c.tenant = in_tenant AND c.thread_key = ANY (locked)
    ), needed AS (
        SELECT n.thread_key, n.namespace, n.id, n.parent, ARRAY(
            SELECT e.key FROM jsonb_each_text(n.versions) e
            WHERE NOT EXISTS (
                SELECT FROM holdfast.checkpoint_values v
                WHERE v.tenant = in_tenant AND v.thread_key = n.thread_key
                  AND v.namespace = n.namespace AND v.channel = e.key AND v.version = e.value
                  AND v.kind IS NOT NULL)
              AND EXISTS (
                SELECT FROM holdfast.checkpoint_writes w
                WHERE w.tenant = in_tenant AND w.thread_key = n.thread_key
                  AND w.namespace = n.namespace AND w.channel = e.key)
            ORDER BY e.key
        ) AS missing
        FROM numbered n WHERE n.place <= in_keep
        -- Without doubles, so that checkpoints that are each other's parents come to an end.
        UNION
        SELECT c.thread_key, c.namespace, c.id, c.parent, ARRAY(
            SELECT m FROM unnest(n.missing) m
            WHERE NOT EXISTS (
                SELECT FROM holdfast.checkpoint_values v
                WHERE v.tenant = in_tenant AND v.thread_key = c.thread_key
                  AND v.namespace = c.namespace AND v.channel = m AND v.version = c.versions ->> m
                  AND v.kind IS NOT NULL)
            ORDER BY m
        )
        FROM needed n
        JOIN holdfast.checkpoints c ON c.tenant = in_tenant AND c.thread_key = n.thread_key
            AND c.namespace = n.namespace AND c.id = n.parent
        WHERE cardinality(n.missing) > 0
    )
    SELECT holdfast.drop_checkpoints(
        in_tenant, array_agg(n.thread_key), array_agg(n.namespace), array_agg(n.id))
    INTO dropped FROM numbered n
    WHERE NOT EXISTS (
        SELECT FROM needed k
        WHERE k.thread_key = n.thread_key AND k.namespace = n.namespace AND k.id = n.id)
    HAVING count(*) > 0;
    RETURN coalesce(dropped, 0);
END
$$;
