-- name: put
-- Store a checkpoint and the values of the channels that changed.
SELECT holdfast.put_checkpoint($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::jsonb,
    $12::text::jsonb, $13::text[], $14::text[], $15::text[], $16::bytea[], $17, $18);

-- name: put_writes
-- Store what tasks wrote after a checkpoint.
SELECT holdfast.put_checkpoint_writes($1, $2, $3, $4, $5::text[], $6::int[], $7::text[], $8::text[],
    $9::text[], $10::bytea[]);

-- name: read
-- The checkpoints of a page with their values and writes, or with those of the channels that are
-- wanted. Another statement of this file takes the place of the page. LIMIT 1 keeps the planner from
-- joining all values of the thread, however long that is.
SELECT p.thread, p.namespace, p.id, p.parent, p.kind, p.body, p.metadata_kind, p.metadata,
       p.labels::text AS labels, p.versions::text AS versions, p.wanted, p.starts,
       v.channels, v.kinds, v.datas, w.tasks, w.indexes, w.written, w.written_kinds, w.written_datas,
       w.paths
FROM (
SELECT c.*, '' AS thread, NULL::text[] AS wanted, false AS starts FROM holdfast.checkpoints c
) p
CROSS JOIN LATERAL (
    SELECT array_agg(v.channel) AS channels, array_agg(v.kind) AS kinds, array_agg(v.data) AS datas
    FROM jsonb_each_text(p.versions) e
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.checkpoint_values v
        WHERE v.tenant = $1 AND v.thread_key = p.thread_key
          AND v.namespace = p.namespace AND v.channel = e.key AND v.version = e.value
        LIMIT 1
    ) v
    WHERE v.kind IS NOT NULL AND (p.wanted IS NULL OR e.key = ANY (p.wanted))
) v
CROSS JOIN LATERAL (
    SELECT array_agg(w.task) AS tasks, array_agg(w.index) AS indexes,
           array_agg(w.channel) AS written, array_agg(w.kind) AS written_kinds,
           array_agg(w.data) AS written_datas, array_agg(w.path) AS paths
    FROM (
        SELECT * FROM holdfast.checkpoint_writes w
        WHERE w.tenant = $1 AND w.thread_key = p.thread_key
          AND w.namespace = p.namespace AND w.id = p.id
          AND (p.wanted IS NULL OR w.channel = ANY (p.wanted))
        ORDER BY w.path, w.task, w.index
    ) w
) w
ORDER BY p.id DESC, p.thread, p.namespace;

-- name: read_one
-- One checkpoint (part 0), and a row for each of its values (1) and writes (2): arrays of them take
-- longer. Of a write, id is its task and parent its path. Another statement of this file takes the
-- place of the page.
SELECT x.* FROM (
SELECT c.*, '' AS thread, NULL::text[] AS wanted, false AS starts FROM holdfast.checkpoints c
) p
CROSS JOIN LATERAL (
    SELECT 0 AS part, p.thread AS name, p.kind, p.body AS data, p.id, p.parent, p.namespace,
           p.metadata_kind, p.metadata, p.labels::text AS labels, p.versions::text AS versions,
           NULL::int AS index
    UNION ALL
    SELECT 1, e.key, v.kind, v.data, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM jsonb_each_text(p.versions) e
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.checkpoint_values v
        WHERE v.tenant = $1 AND v.thread_key = p.thread_key
          AND v.namespace = p.namespace AND v.channel = e.key AND v.version = e.value
        LIMIT 1
    ) v
    WHERE v.kind IS NOT NULL
    UNION ALL
    SELECT 2, w.channel, w.kind, w.data, w.task, w.path, NULL, NULL, NULL, NULL, NULL, w.index
    FROM holdfast.checkpoint_writes w
    WHERE w.tenant = $1 AND w.thread_key = p.thread_key
      AND w.namespace = p.namespace AND w.id = p.id
) x;

-- name: newest
-- The newest checkpoint of a namespace.
SELECT c.*, t.id AS thread, NULL::text[] AS wanted, false AS starts
FROM holdfast.threads t
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.checkpoints c
    WHERE c.tenant = $1 AND c.thread_key = t.key AND c.namespace = $3
    ORDER BY c.id DESC LIMIT 1
) c
WHERE t.tenant = $1 AND t.id = $2 AND (t.expires_at IS NULL OR t.expires_at > holdfast.now());

-- name: by_id
-- A checkpoint by its id.
SELECT c.*, t.id AS thread, NULL::text[] AS wanted, false AS starts
FROM holdfast.threads t
JOIN holdfast.checkpoints c ON c.tenant = $1 AND c.thread_key = t.key
WHERE t.tenant = $1 AND t.id = $2 AND (t.expires_at IS NULL OR t.expires_at > holdfast.now())
  AND c.namespace = $3 AND c.id = $4;

-- name: list
-- A page of checkpoints by id, of all threads; each condition may be NULL.
SELECT c.*, t.id AS thread, NULL::text[] AS wanted, false AS starts
FROM holdfast.threads t
JOIN holdfast.checkpoints c ON c.tenant = t.tenant AND c.thread_key = t.key
WHERE t.tenant = $1 AND c.tenant = $1
  AND starts_with(t.id, $2) AND ($3 = '' OR NOT starts_with(t.id, $3))
  AND (t.expires_at IS NULL OR t.expires_at > (SELECT holdfast.now()))
  AND ($4::text IS NULL OR c.namespace = $4)
  AND ($5::text IS NULL OR c.id = $5)
  AND ($6::text IS NULL OR c.id < $6)
  AND c.labels @> $7::text::jsonb
  AND ($8::text IS NULL OR c.id < $8
       OR (c.id = $8 AND (t.id, c.namespace) > ($9::text, $10::text)))
ORDER BY c.id DESC, t.id, c.namespace
LIMIT $11;

-- name: list_thread
-- The same of the thread $2.
SELECT c.*, t.id AS thread, NULL::text[] AS wanted, false AS starts
FROM holdfast.threads t
JOIN holdfast.checkpoints c ON c.tenant = $1 AND c.thread_key = t.key
WHERE t.tenant = $1 AND t.id = $2
  AND (t.expires_at IS NULL OR t.expires_at > (SELECT holdfast.now()))
  AND ($3::text IS NULL OR c.namespace = $3)
  AND ($4::text IS NULL OR c.id = $4)
  AND ($5::text IS NULL OR c.id < $5)
  AND c.labels @> $6::text::jsonb
  AND ($7::text IS NULL OR c.id < $7 OR (c.id = $7 AND c.namespace > $8))
ORDER BY c.id DESC, c.namespace
LIMIT $9;

-- name: ancestors
-- A checkpoint, which starts, and its ancestors up to where each of the channels $5 has a value.
-- Each has the channels that none below it has a value of.
WITH RECURSIVE up AS (
    (
        SELECT c.tenant, c.thread_key, c.namespace, c.id, c.parent, true AS starts,
               $5::text[] AS wanted, c.versions
        FROM holdfast.threads t
        CROSS JOIN LATERAL (
            SELECT coalesce($4, max(b.id)) AS id FROM holdfast.checkpoints b
            WHERE $4 IS NULL AND b.tenant = $1 AND b.thread_key = t.key AND b.namespace = $3
        ) s
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.checkpoints c
            WHERE c.tenant = $1 AND c.thread_key = t.key AND c.namespace = $3 AND c.id = s.id
            LIMIT 1
        ) c
        WHERE t.tenant = $1 AND t.id = $2
          AND (t.expires_at IS NULL OR t.expires_at > holdfast.now())
    )
    -- Without doubles, so that checkpoints that are each other's parents come to an end.
    UNION
    SELECT c.tenant, c.thread_key, c.namespace, c.id, c.parent, false, CASE
        WHEN u.starts THEN u.wanted
        ELSE ARRAY(
            SELECT m FROM unnest(u.wanted) m
            WHERE (
                SELECT v.kind FROM holdfast.checkpoint_values v
                WHERE v.tenant = $1 AND v.thread_key = u.thread_key
                  AND v.namespace = u.namespace AND v.channel = m AND v.version = u.versions ->> m
            ) IS NULL
            ORDER BY m)
        END, c.versions
    FROM up u
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.checkpoints c
        WHERE c.tenant = $1 AND c.thread_key = u.thread_key AND c.namespace = u.namespace
          AND c.id = u.parent
        LIMIT 1
    ) c
    WHERE cardinality(u.wanted) > 0
)
SELECT c.*, $2::text AS thread, u.wanted, u.starts
FROM up u
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.checkpoints c
    WHERE c.tenant = $1 AND c.thread_key = u.thread_key AND c.namespace = u.namespace
      AND c.id = u.id
    LIMIT 1
) c
WHERE cardinality(u.wanted) > 0;

-- name: delete_threads
-- Delete threads with all they have; how many there were that had not expired.
WITH due AS MATERIALIZED (
    SELECT tenant, key, expires_at IS NULL OR expires_at > holdfast.now() AS present
    FROM holdfast.threads WHERE tenant = $1 AND id = ANY ($2::text[])
    ORDER BY key FOR UPDATE
), gone AS (
    DELETE FROM holdfast.threads t USING due
    WHERE t.tenant = $1 AND t.key = due.key
    RETURNING due.present
)
SELECT count(*) FILTER (WHERE present) FROM gone;

-- name: delete_runs
-- Delete the checkpoints of runs; how many there were.
SELECT holdfast.delete_runs($1, $2::text[], $3, $4);

-- name: copy
-- Copy a thread; how many checkpoints were copied.
SELECT holdfast.copy_thread($1, $2, $3);

-- name: prune
-- Delete all but the newest checkpoints and what they need; how many were deleted.
SELECT holdfast.prune_threads($1, $2::text[], $3);

-- name: purge
-- Remove threads that have expired, of all tenants, a batch at a time; how many there were.
WITH due AS MATERIALIZED (
    SELECT tenant, key FROM holdfast.threads
    WHERE expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.threads t USING due
    WHERE t.tenant = due.tenant AND t.key = due.key
    RETURNING 1
)
SELECT count(*) FROM gone;
