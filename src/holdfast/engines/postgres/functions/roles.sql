-- version: 1
-- Roles: who may ask for what concerns all tenants, and who owns the schema.

-- Raise unless the login of this session is a member of one of these roles, or owns the schema. Where none
-- of them exists, the right to call a function decides alone.
CREATE OR REPLACE FUNCTION holdfast.check_login(VARIADIC these text[]) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known text[];
BEGIN
    SELECT array_agg(r) INTO known FROM unnest(these) r WHERE to_regrole(r) IS NOT NULL;
    IF known IS NULL
        OR EXISTS (SELECT FROM unnest(known) r WHERE pg_has_role(session_user, r::name, 'MEMBER'))
        OR pg_has_role(
            session_user, (SELECT nspowner FROM pg_namespace WHERE nspname = 'holdfast'), 'MEMBER')
    THEN
        RETURN;
    END IF;
    RAISE insufficient_privilege USING
        MESSAGE = format('%s may not ask which tenants have work', session_user),
        HINT = format('GRANT %s TO %I', known[1], session_user);
END
$$;

-- Make a role the owner of the schema and of all that is in it, so that what runs as the owner does not run
-- as a superuser. Safe to repeat: what the role owns already is not touched. Returns how many changed.
CREATE OR REPLACE FUNCTION holdfast.hand_over(in_role text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    changed integer := 0;
    keeper oid := (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = in_role);
    the_schema oid := to_regnamespace('holdfast');
    statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER SCHEMA holdfast OWNER TO %I', in_role)
        FROM pg_catalog.pg_namespace n WHERE n.oid = the_schema AND n.nspowner <> keeper
        UNION ALL
        SELECT format('ALTER %s %s OWNER TO %I',
            CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
            c.oid::regclass, in_role)
        FROM pg_catalog.pg_class c
        WHERE c.relnamespace = the_schema AND c.relkind IN ('r', 'p', 'v', 'S') AND c.relowner <> keeper
            -- The sequence of a column follows its table.
            AND NOT EXISTS (
                SELECT FROM pg_catalog.pg_depend d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
                    AND c.relkind = 'S')
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, in_role)
        FROM pg_catalog.pg_proc p WHERE p.pronamespace = the_schema AND p.proowner <> keeper
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO %I', t.oid::regtype, in_role)
        FROM pg_catalog.pg_type t
        LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
        WHERE t.typnamespace = the_schema AND t.typowner <> keeper
            AND (t.typtype IN ('d', 'e') OR t.typtype = 'c' AND c.relkind = 'c')
        UNION ALL
        SELECT format('ALTER POLICY keeper ON %s TO %I', p.polrelid::regclass, in_role)
        FROM pg_catalog.pg_policy p
        JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = the_schema AND p.polname = 'keeper' AND p.polroles <> ARRAY[keeper]
    LOOP
        EXECUTE statement;
        changed := changed + 1;
    END LOOP;
    RETURN changed;
END
$$;
