-- name: ping
-- Whether the server answers.
SELECT 1;

-- name: settings
-- What decides about durability, what the server is, and whether policies hold for the role.
SELECT current_setting('server_version_num')::int AS version,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '') AS host,
       pg_is_in_recovery() AS standby,
       current_setting('synchronous_standby_names') <> '' AS synchronous,
       (SELECT count(*) FROM pg_catalog.pg_stat_replication)::int AS standbys,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector') AS pgvector,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'age') AS age,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'citus') AS citus,
       to_regprocedure('holdfast.shards_of_nodes()') IS NOT NULL AS knows_shards,
       (SELECT count(*) > 0 FROM pg_catalog.pg_available_extensions WHERE name = 'age') AS age_available,
       current_user::text AS role,
       (SELECT r.rolsuper OR r.rolbypassrls OR EXISTS (
            SELECT FROM pg_catalog.pg_namespace n
            WHERE n.nspname = 'holdfast' AND pg_catalog.pg_has_role(n.nspowner, 'USAGE'))
        FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) AS sees_all,
       (SELECT count(*) > 0 AND bool_and(
            row_security_active(c.oid) AND NOT pg_catalog.pg_has_role(c.relowner, 'USAGE'))
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
        WHERE c.relnamespace = to_regnamespace('holdfast') AND c.relkind = 'r') AS confined;
