-- name: create
-- A new key; asked again after a lost answer, the same one.
INSERT INTO holdfast.api_keys AS k (
    tenant, digest, id, owner, name, scope, ttl_seconds, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7::double precision, n.at, n.at + make_interval(secs => $7)
FROM (SELECT holdfast.now() AS at OFFSET 0) n
ON CONFLICT (tenant, digest) DO UPDATE SET digest = k.digest
RETURNING k.*;

-- name: verify
-- A live key by its digest; its use is recorded if the last one was $3 seconds ago. Whoever finds the
-- row locked leaves that to the other.
WITH used AS (
    UPDATE holdfast.api_keys k SET last_used_at = holdfast.now()
    WHERE k.tenant = $1 AND k.digest = (
        SELECT u.digest FROM holdfast.api_keys u
        WHERE u.tenant = $1 AND u.digest = $2 AND u.revoked_at IS NULL
            AND (u.expires_at IS NULL OR u.expires_at > holdfast.now())
            AND (u.last_used_at IS NULL
                OR u.last_used_at <= holdfast.now() - make_interval(secs => $3))
        FOR NO KEY UPDATE SKIP LOCKED)
)
SELECT k.*
FROM holdfast.api_keys k
WHERE k.tenant = $1 AND k.digest = $2 AND k.revoked_at IS NULL
    AND (k.expires_at IS NULL OR k.expires_at > holdfast.now());

-- name: live
-- A live key by its id.
SELECT k.*
FROM holdfast.api_keys k
WHERE k.tenant = $1 AND k.id = $2 AND k.revoked_at IS NULL
    AND (k.expires_at IS NULL OR k.expires_at > holdfast.now());

-- name: list
-- All keys of a tenant.
SELECT k.*
FROM holdfast.api_keys k
WHERE k.tenant = $1
ORDER BY k.created_at, k.id;

-- name: revoke
-- End a key; no row when there is none that was not revoked.
UPDATE holdfast.api_keys k SET revoked_at = holdfast.now()
WHERE k.tenant = $1 AND k.id = $2 AND k.revoked_at IS NULL
RETURNING true;

-- name: rotate
-- Make a key ($3 its digest, $4 its id) like a live one ($2), which ends after $5 seconds.
SELECT * FROM holdfast.rotate_api_key($1, $2, $3, $4, $5);

-- name: delete
-- Remove a key that was revoked or has expired; no row when there is no such key.
DELETE FROM holdfast.api_keys k
WHERE k.tenant = $1 AND k.id = $2
    AND (k.revoked_at IS NOT NULL OR k.expires_at <= holdfast.now())
RETURNING true;
