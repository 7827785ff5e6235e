-- name: put
-- Make a ref to bytes that are uploaded.
SELECT * FROM holdfast.put_blob_of_subject($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: get
-- A live blob.
SELECT * FROM holdfast.blob_index
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now());

-- name: pin
-- Keep a live blob.
UPDATE holdfast.blob_index SET expires_at = NULL
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
RETURNING true;

-- name: unpin
-- Let a live blob expire after a full window.
UPDATE holdfast.blob_index SET expires_at = holdfast.now() + make_interval(secs => $4)
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
RETURNING true;

-- name: take
-- Hide a live blob.
UPDATE holdfast.blob_index SET taken_at = holdfast.now()
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
RETURNING *;

-- name: take_expired
-- Hide what has expired, and hand out again what was taken long ago, the earliest first.
WITH clock AS MATERIALIZED (
    SELECT holdfast.now() AS now
), expired AS MATERIALIZED (
    SELECT object_key, expires_at AS due_at FROM holdfast.blob_index
    WHERE tenant = $1 AND place = $2 AND taken_at IS NULL
      AND expires_at <= (SELECT now FROM clock)
    ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), unfinished AS MATERIALIZED (
    SELECT object_key, taken_at AS due_at FROM holdfast.blob_index
    WHERE tenant = $1 AND place = $2
      AND taken_at <= (SELECT now - make_interval(secs => $4) FROM clock)
    ORDER BY taken_at LIMIT $3 FOR UPDATE SKIP LOCKED
), due AS (
    SELECT * FROM expired UNION ALL SELECT * FROM unfinished ORDER BY due_at LIMIT $3
), taken AS (
    UPDATE holdfast.blob_index b SET taken_at = clock.now
    FROM clock, due
    WHERE b.tenant = $1 AND b.place = $2 AND b.object_key = due.object_key
    RETURNING b.*, due.due_at
)
SELECT * FROM taken ORDER BY due_at;

-- name: forget
-- Drop what was taken; how many there were.
WITH gone AS (
    DELETE FROM holdfast.blob_index
    WHERE tenant = $1 AND place = $2 AND ref = ANY ($3::text[]) AND taken_at IS NOT NULL
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: condemn
-- Bar the keys that no ref uses: those returned, the ones barred before among them.
INSERT INTO holdfast.blob_index AS b (tenant, place, object_key)
SELECT $1, $2, k.key FROM unnest($3::text[]) AS k (key) ORDER BY k.key COLLATE "C"
ON CONFLICT (tenant, place, object_key) DO UPDATE SET object_key = excluded.object_key
WHERE b.ref IS NULL
RETURNING object_key;
