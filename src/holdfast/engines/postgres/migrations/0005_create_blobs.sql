-- What is known about blobs, wherever their bytes are; and the bytes of those that are kept here.

-- place names the store that holds the bytes. A row without a ref is a condemned key: it stands in
-- the way of whoever would put it, for good. expires_at is NULL while a blob is pinned.
CREATE TABLE holdfast.blob_index (
    tenant text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    object_key text COLLATE "C" NOT NULL,
    ref text COLLATE "C",
    size_bytes bigint,
    content_type text,
    sha256 text COLLATE "C",
    created_at timestamptz,
    expires_at timestamptz,
    taken_at timestamptz,
    PRIMARY KEY (tenant, place, object_key),
    UNIQUE (tenant, place, ref)
);
CREATE INDEX blob_index_by_expiry ON holdfast.blob_index (tenant, place, expires_at)
    WHERE expires_at IS NOT NULL AND taken_at IS NULL;
CREATE INDEX blob_index_by_taking ON holdfast.blob_index (tenant, place, taken_at)
    WHERE taken_at IS NOT NULL;
CREATE INDEX blob_index_to_purge ON holdfast.blob_index (expires_at)
    WHERE place = 'postgres' AND expires_at IS NOT NULL;

-- Every chunk but the last of a blob has exactly 1 MiB, so that a range is found by its number.
CREATE TABLE holdfast.blob_chunks (
    tenant text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    number int NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, ref, number)
);
-- Blobs are mostly compressed already.
ALTER TABLE holdfast.blob_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Makes a ref to an object; the same again is the ref that is there.
CREATE FUNCTION holdfast.put_blob(
    in_tenant text, in_place text, in_ref text, in_object_key text, in_size_bytes bigint,
    in_content_type text, in_sha256 text, in_ttl_seconds double precision
) RETURNS holdfast.blob_index
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := holdfast.now();
    stored holdfast.blob_index;
BEGIN
    INSERT INTO holdfast.blob_index AS b (
        tenant, place, object_key, ref, size_bytes, content_type, sha256, created_at, expires_at)
    VALUES (in_tenant, in_place, in_object_key, in_ref, in_size_bytes, in_content_type, in_sha256,
            moment, moment + make_interval(secs => in_ttl_seconds))
    ON CONFLICT DO NOTHING
    RETURNING b.* INTO stored;
    IF FOUND THEN
        RETURN stored;
    END IF;
    PERFORM 1 FROM holdfast.blob_index b
    WHERE b.tenant = in_tenant AND b.place = in_place AND b.object_key = in_object_key
      AND b.ref IS NULL;
    IF FOUND THEN
        PERFORM holdfast.fail(
            'HF001', 'the bytes were swept as nobody''s: upload them again',
            jsonb_build_object('kind', 'object', 'key', in_object_key));
    END IF;
    SELECT b.* INTO stored FROM holdfast.blob_index b
    WHERE b.tenant = in_tenant AND b.place = in_place AND b.ref = in_ref
      AND b.object_key = in_object_key AND b.size_bytes = in_size_bytes
      AND b.content_type = in_content_type AND b.sha256 = in_sha256
      AND b.taken_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > moment);
    IF NOT FOUND THEN
        PERFORM holdfast.fail(
            'HF001', 'the ref or its object is taken: use new ones',
            jsonb_build_object('kind', 'blob', 'key', in_ref));
    END IF;
    RETURN stored;
END
$$;
