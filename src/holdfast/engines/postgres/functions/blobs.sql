-- version: 2
-- Blobs.

-- Makes a ref to an object; the same again is the ref that is there.
CREATE OR REPLACE FUNCTION holdfast.put_blob_of_subject(
    in_tenant text, in_place text, in_ref text, in_object_key text, in_size_bytes bigint,
    in_content_type text, in_sha256 text, in_ttl_seconds double precision, in_subject text
) RETURNS holdfast.blob_index
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := holdfast.now();
    stored holdfast.blob_index;
BEGIN
    INSERT INTO holdfast.blob_index AS b (
        tenant, place, object_key, ref, size_bytes, content_type, sha256, created_at, expires_at,
        subject)
    VALUES (in_tenant, in_place, in_object_key, in_ref, in_size_bytes, in_content_type, in_sha256,
            moment, moment + make_interval(secs => in_ttl_seconds), in_subject)
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
      AND b.content_type = in_content_type AND b.sha256 = in_sha256 AND b.subject = in_subject
      AND b.taken_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > moment);
    IF NOT FOUND THEN
        PERFORM holdfast.fail(
            'HF001', 'the ref or its object is taken: use new ones',
            jsonb_build_object('kind', 'blob', 'key', in_ref));
    END IF;
    RETURN stored;
END
$$;

-- The same for processes of an earlier version: the blob has no subject.
CREATE OR REPLACE FUNCTION holdfast.put_blob(
    in_tenant text, in_place text, in_ref text, in_object_key text, in_size_bytes bigint,
    in_content_type text, in_sha256 text, in_ttl_seconds double precision
) RETURNS holdfast.blob_index
LANGUAGE sql
AS $$
    SELECT * FROM holdfast.put_blob_of_subject(
        in_tenant, in_place, in_ref, in_object_key, in_size_bytes, in_content_type, in_sha256,
        in_ttl_seconds, '');
$$;
