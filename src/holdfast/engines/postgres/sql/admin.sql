-- name: missing_rights
-- What the connected role lacks on the tables of the schema.
SELECT current_user AS role, r.right, format('%I.%I', n.nspname, c.relname) AS name
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS r ("right")
WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND c.relname <> 'migrations'
    AND NOT pg_catalog.has_table_privilege(c.oid, r.right)
ORDER BY 3, 2;

-- name: stale_tables
-- A statement for each table whose statistics are old: a tenth of it changed since.
SELECT format('ANALYZE %I.%I', s.schemaname, s.relname)
FROM pg_catalog.pg_stat_user_tables s
WHERE s.schemaname = 'holdfast'
    AND s.n_mod_since_analyze > 1000 + s.n_live_tup / 10
    AND pg_catalog.pg_has_role(
        current_user, (SELECT relowner FROM pg_catalog.pg_class c WHERE c.oid = s.relid), 'USAGE')
ORDER BY 1;

-- name: unconfined
-- Tables with a tenant whose policies are not in force.
SELECT format('%I.%I', n.nspname, c.relname) AS name
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND NOT holdfast.is_distributed(c.oid)
    AND NOT (c.relrowsecurity AND c.relforcerowsecurity
        AND EXISTS (
            SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tenant'))
ORDER BY 1;
