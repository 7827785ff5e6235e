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

-- name: is_installed
-- Whether the schema has the functions that roles need; an older one is migrated later.
SELECT to_regprocedure('holdfast.hand_over(text)') IS NOT NULL;

-- name: owned_by_superuser
-- Whether a superuser owns the schema or something in it, and the login role can change that.
SELECT current_setting('is_superuser') = 'on' AND EXISTS (
    SELECT FROM (
        SELECT nspowner AS owner FROM pg_catalog.pg_namespace WHERE nspname = 'holdfast'
        UNION ALL
        SELECT relowner FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('holdfast')
        UNION ALL
        SELECT proowner FROM pg_catalog.pg_proc WHERE pronamespace = to_regnamespace('holdfast')
    ) o
    JOIN pg_catalog.pg_roles r ON r.oid = o.owner WHERE r.rolsuper);

-- name: hand_over
-- Make $1 the owner of all that is in the schema; or, if the schema has an owner who is no superuser, that one.
SELECT holdfast.hand_over(CASE WHEN r.rolsuper THEN $1::text ELSE r.rolname::text END)
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
WHERE n.nspname = 'holdfast';

-- name: may_more
-- Whether a role is a superuser or owns the schema: $1 role.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_roles r
    WHERE r.rolname = $1 AND (r.rolsuper OR r.rolbypassrls OR EXISTS (
        SELECT FROM pg_catalog.pg_namespace n
        WHERE n.nspname = 'holdfast' AND pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER'))));

-- name: login_statements
-- The statements that make a login: $1 name, $2 password, $3 roles, $4 whether it is new.
SELECT CASE WHEN $4 THEN format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)
            ELSE format('ALTER ROLE %I LOGIN PASSWORD %L', $1::text, $2::text) END
UNION ALL
SELECT format('GRANT %I TO %I', role, $1::text) FROM unnest($3::text[]) AS role;
