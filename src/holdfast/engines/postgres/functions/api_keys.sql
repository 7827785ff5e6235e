-- version: 1
-- API keys.

-- Makes a key like a live one, which then ends after so many seconds; no row when there is none.
-- Asked again after a lost answer, the key that was made.
CREATE OR REPLACE FUNCTION holdfast.rotate_api_key(
    in_tenant text, in_id text, in_digest text, in_new_id text, in_grace_seconds double precision
) RETURNS SETOF holdfast.api_keys
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    old holdfast.api_keys;
BEGIN
    SELECT * INTO old FROM holdfast.api_keys k
    WHERE k.tenant = in_tenant AND k.id = in_id
    FOR UPDATE;
    IF old.revoked_at IS NULL AND (old.expires_at IS NULL OR old.expires_at > v_now)
        AND NOT EXISTS (
            SELECT FROM holdfast.api_keys k
            WHERE k.tenant = in_tenant AND k.digest = in_digest) THEN
        INSERT INTO holdfast.api_keys (
            tenant, digest, id, owner, name, created_at, scope, ttl_seconds, expires_at)
        SELECT k.tenant, in_digest, in_new_id, k.owner, k.name, v_now, k.scope, k.ttl_seconds,
            v_now + make_interval(secs => k.ttl_seconds)
        FROM holdfast.api_keys k
        WHERE k.tenant = in_tenant AND k.id = in_id;
        UPDATE holdfast.api_keys k
        SET expires_at = least(k.expires_at, v_now + make_interval(secs => in_grace_seconds))
        WHERE k.tenant = in_tenant AND k.id = in_id;
    END IF;
    RETURN QUERY
    SELECT * FROM holdfast.api_keys k WHERE k.tenant = in_tenant AND k.digest = in_digest;
END
$$;
