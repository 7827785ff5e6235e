-- name: tenants
-- Tenants that have data, after $1, at most $2.
SELECT tenant FROM holdfast.list_tenants($1, $2);
