-- name: exists
-- Whether there is a role.
SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1);

-- name: is_member
-- Whether the login role may work as another.
SELECT pg_catalog.pg_has_role(current_user, $1::text::name, 'MEMBER')
    AND (current_setting('is_superuser') = 'on'
         OR EXISTS (
            SELECT FROM pg_catalog.pg_auth_members m
            JOIN pg_catalog.pg_roles r ON r.oid = m.roleid
            JOIN pg_catalog.pg_roles u ON u.oid = m.member
            WHERE r.rolname = $1 AND u.rolname = current_user));

-- name: login
-- The login role, whether it is a superuser, and whether it owns the schema.
SELECT current_user::text, current_setting('is_superuser') = 'on', EXISTS (
    SELECT FROM pg_catalog.pg_namespace n
    WHERE n.nspname = 'holdfast'
        AND pg_catalog.pg_has_role(current_user, n.nspowner, 'USAGE'));

-- name: may_work
-- Whether a role may read and write every table of the schema, and call every function.
SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1)
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'holdfast' AND c.relkind = 'r'
            AND c.relname NOT IN ('migrations', 'function_files', 'notice_key')
            AND NOT (
                pg_catalog.has_schema_privilege($1, n.oid, 'USAGE')
                AND pg_catalog.has_table_privilege($1, c.oid, 'SELECT')
                AND pg_catalog.has_table_privilege($1, c.oid, 'DELETE')))
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = to_regnamespace('holdfast')
            AND NOT pg_catalog.has_function_privilege($1, p.oid, 'EXECUTE'));
