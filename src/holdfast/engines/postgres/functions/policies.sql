-- version: 2
-- Isolation of tenants by the database.

-- What a policy calls where the setting is empty: a statement that is for no tenant fails, instead of
-- finding nothing.
CREATE OR REPLACE FUNCTION holdfast.no_tenant() RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = 'this statement is for no tenant',
        HINT = 'A process of an older version must be stopped before the schema is migrated. '
            'In psql: SELECT set_config(''holdfast.tenant'', ''...'', false).';
END
$$;

-- Whether Citus divides a table by its tenant. A policy cannot hold there.
CREATE OR REPLACE FUNCTION holdfast.is_distributed(the_table regclass) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = the_table);
END
$$;

-- Confine every table with a tenant to that of the statement, and every view to what its caller sees.
-- The owner of a table, as whom migrations, maintenance and the functions of all_tenants.sql run, sees
-- all. Safe to repeat: what is confined already is not touched. Returns how many changed.
CREATE OR REPLACE FUNCTION holdfast.confine_tables() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    changed integer := 0;
    place record;
BEGIN
    FOR place IN
        SELECT c.oid, c.relkind, format('%I.%I', n.nspname, c.relname) AS name,
               quote_ident(pg_catalog.pg_get_userbyid(c.relowner)) AS owner
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'holdfast' AND (
            c.relkind = 'v' AND NOT coalesce(c.reloptions, '{}') @> '{security_invoker=true}'
            OR c.relkind = 'r' AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
                AND NOT holdfast.is_distributed(c.oid)
                AND EXISTS (
                    SELECT FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped))
        ORDER BY c.relname
    LOOP
        changed := changed + 1;
        IF place.relkind = 'v' THEN
            EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', place.name);
            CONTINUE;
        END IF;
        EXECUTE format($policy$
            DROP POLICY IF EXISTS tenant ON %1$s;
            DROP POLICY IF EXISTS keeper ON %1$s;
            CREATE POLICY tenant ON %1$s
            USING (tenant = coalesce(
                nullif(current_setting('holdfast.tenant', true), ''), holdfast.no_tenant()))
            WITH CHECK (tenant = coalesce(
                nullif(current_setting('holdfast.tenant', true), ''), holdfast.no_tenant()));
            CREATE POLICY keeper ON %1$s TO %2$s USING (true) WITH CHECK (true);
            ALTER TABLE %1$s ENABLE ROW LEVEL SECURITY;
            ALTER TABLE %1$s FORCE ROW LEVEL SECURITY;
        $policy$, place.name, place.owner);
    END LOOP;
    RETURN changed;
END
$$;
