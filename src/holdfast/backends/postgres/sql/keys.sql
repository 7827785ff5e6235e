-- name: create
-- A new key; asked again after a lost answer, the same one.
INSERT INTO holdfast.api_keys AS k (tenant, digest, id, owner, name, created_at)
VALUES ($1, $2, $3, $4, $5, holdfast.now())
ON CONFLICT (tenant, digest) DO UPDATE SET digest = k.digest
RETURNING k.tenant, k.id, k.owner, k.name, k.created_at, k.revoked_at;

-- name: verify
-- A live key by its digest.
SELECT k.tenant, k.id, k.owner, k.name, k.created_at, k.revoked_at
FROM holdfast.api_keys k
WHERE k.tenant = $1 AND k.digest = $2 AND k.revoked_at IS NULL;

-- name: list
-- All keys of a tenant.
SELECT k.tenant, k.id, k.owner, k.name, k.created_at, k.revoked_at
FROM holdfast.api_keys k
WHERE k.tenant = $1
ORDER BY k.created_at, k.id;

-- name: revoke
-- End a key; no row when there is no live one.
UPDATE holdfast.api_keys k SET revoked_at = holdfast.now()
WHERE k.tenant = $1 AND k.id = $2 AND k.revoked_at IS NULL
RETURNING true;
