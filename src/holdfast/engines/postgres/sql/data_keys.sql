-- name: add
-- Of two that add a key for the same subject, the first one wins.
INSERT INTO holdfast.data_keys (tenant, number, subject, kek, wrapped, created_at)
VALUES ($1, $2, $3, $4, $5, holdfast.now())
ON CONFLICT DO NOTHING;

-- name: of_subject
SELECT number, subject, kek, wrapped FROM holdfast.data_keys WHERE tenant = $1 AND subject = $2;

-- name: of_numbers
SELECT number, subject, kek, wrapped FROM holdfast.data_keys
WHERE tenant = $1 AND number = ANY ($2::bigint[]);

-- name: page
SELECT number, subject, kek, wrapped FROM holdfast.data_keys
WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3;

-- name: rewrap
UPDATE holdfast.data_keys SET kek = $4, wrapped = $5
WHERE tenant = $1 AND number = $2 AND kek = $3
RETURNING number;

-- name: tenants
SELECT tenant FROM holdfast.tenants_to_rewrap($1, $2, $3);
