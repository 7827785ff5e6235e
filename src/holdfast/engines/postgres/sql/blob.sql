-- name: store
-- Make a blob of the chunks that are there and the last ones; the same again changes nothing.
WITH blob AS (
    INSERT INTO holdfast.blob_index (
        tenant, place, object_key, ref, size_bytes, content_type, sha256, created_at, expires_at,
        subject)
    SELECT $1, 'postgres', $2, $2, $3, $4, $5, clock.now, clock.now + make_interval(secs => $6), $9
    FROM (SELECT holdfast.now() AS now OFFSET 0) clock
    ON CONFLICT DO NOTHING
)
INSERT INTO holdfast.blob_chunks (tenant, ref, number, data)
SELECT $1, $2, $7 + c.at - 1, c.data FROM unnest($8::bytea[]) WITH ORDINALITY AS c (data, at)
ON CONFLICT DO NOTHING;

-- name: append
-- Chunks of a blob that is not whole yet, within the transaction that makes it.
INSERT INTO holdfast.blob_chunks (tenant, ref, number, data)
SELECT $1, $2, $3 + c.at - 1, c.data FROM unnest($4::bytea[]) WITH ORDINALITY AS c (data, at);

-- name: open
-- A live blob and its chunks from $3 to $4, one row for each, or one without a chunk.
SELECT b.*, c.number, c.data
FROM holdfast.blob_index b
LEFT JOIN holdfast.blob_chunks c
    ON c.tenant = $1 AND c.ref = b.ref AND c.number BETWEEN $3 AND $4
WHERE b.tenant = $1 AND b.place = 'postgres' AND b.ref = $2
  AND b.taken_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > holdfast.now())
ORDER BY c.number;

-- name: chunks
-- Chunks of a blob whose reading has begun.
SELECT number, data FROM holdfast.blob_chunks
WHERE tenant = $1 AND ref = $2 AND number BETWEEN $3 AND $4
ORDER BY number;

-- name: delete
-- Remove a live blob with its bytes; how many there were.
WITH gone AS (
    DELETE FROM holdfast.blob_index
    WHERE tenant = $1 AND place = 'postgres' AND ref = $2
      AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
    RETURNING ref
), bytes AS (
    DELETE FROM holdfast.blob_chunks c USING gone WHERE c.tenant = $1 AND c.ref = gone.ref
)
SELECT count(*) FROM gone;

-- name: sweep
-- Remove expired blobs with their bytes: at most $2, and no more once they are 256 MiB together.
WITH due AS MATERIALIZED (
    SELECT ref, size_bytes, expires_at FROM holdfast.blob_index
    WHERE tenant = $1 AND place = 'postgres' AND taken_at IS NULL
      AND expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), batch AS (
    SELECT ref, sum(size_bytes) OVER (ORDER BY expires_at, ref) - size_bytes AS bytes_before
    FROM due
), gone AS (
    DELETE FROM holdfast.blob_index b USING batch
    WHERE b.tenant = $1 AND b.place = 'postgres' AND b.ref = batch.ref
      AND batch.bytes_before < 268435456
    RETURNING b.ref
), bytes AS (
    DELETE FROM holdfast.blob_chunks c USING gone WHERE c.tenant = $1 AND c.ref = gone.ref
)
SELECT count(*) FROM gone;

-- name: purge
-- The same for all tenants.
WITH due AS MATERIALIZED (
    SELECT tenant, ref, size_bytes, expires_at FROM holdfast.blob_index
    WHERE place = 'postgres' AND expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), batch AS (
    SELECT tenant, ref,
           sum(size_bytes) OVER (ORDER BY expires_at, tenant, ref) - size_bytes AS bytes_before
    FROM due
), gone AS (
    DELETE FROM holdfast.blob_index b USING batch
    WHERE b.tenant = batch.tenant AND b.place = 'postgres' AND b.ref = batch.ref
      AND batch.bytes_before < 268435456
    RETURNING b.tenant, b.ref
), bytes AS (
    DELETE FROM holdfast.blob_chunks c USING gone
    WHERE c.tenant = gone.tenant AND c.ref = gone.ref
)
SELECT count(*) FROM gone;
