-- name: add
-- Of two that add a key for the same subject, the first one wins.
INSERT INTO holdfast.data_keys (tenant, number, subject, kek, wrapped, created_at)
VALUES ($1, $2, $3, $4, $5, holdfast.now())
ON CONFLICT DO NOTHING;

-- name: of_subject
SELECT number, subject, kek, wrapped, coalesce(first_number, 0) FROM holdfast.data_keys
WHERE tenant = $1 AND subject = $2 AND NOT replaced;

-- name: replace
-- Store the key $2 of the subject $3 in place of the current one, if that has the number $6.
SELECT holdfast.replace_data_key($1, $2, $3, $4, $5, $6);

-- name: current
-- Current keys that were made $2 seconds ago or before.
SELECT number, subject, kek, wrapped, coalesce(first_number, 0) FROM holdfast.data_keys
WHERE tenant = $1 AND NOT replaced AND number > $3
    AND created_at <= holdfast.now() - make_interval(secs => $2)
ORDER BY number LIMIT $4;

-- name: of_numbers
SELECT number, subject, kek, wrapped, coalesce(first_number, 0) FROM holdfast.data_keys
WHERE tenant = $1 AND number = ANY ($2::bigint[]);

-- name: page
SELECT number, subject, kek, wrapped, coalesce(first_number, 0) FROM holdfast.data_keys
WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3;

-- name: rewrap
UPDATE holdfast.data_keys SET kek = $4, wrapped = $5
WHERE tenant = $1 AND number = $2 AND kek = $3
RETURNING number;

-- name: tenants
SELECT tenant FROM holdfast.tenants_to_rewrap($1, $2, $3);
