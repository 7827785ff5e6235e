-- version: 2
-- Citus: what is distributed, what should be, and the statements for the difference.

-- The form of a statement or a function that Citus can plan: without what stands between alone and end, and with
-- what stands in comments.
CREATE OR REPLACE FUNCTION holdfast.distributed_text(in_text text) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT regexp_replace(
        regexp_replace(in_text, '/\* alone: \*/.*?/\* end \*/', '', 'g'),
        '/\* distributed: (.*?) \*/', '\1', 'g')
$$;

-- The functions whose first argument is the tenant, and those that need another form. One that draws a number or
-- takes an advisory lock, by itself or through a function that it calls, or that needs a table which is not
-- divided, has to run on the coordinator: locks are of one node, and the numbers of a tenant ascend then also after
-- its shard has moved. is_alone: it is written for a database that is not distributed, and distributed is its
-- other form: in plpgsql, if it is one in SQL, and with the conditions that stand in comments.
CREATE OR REPLACE FUNCTION holdfast.functions_by_tenant()
RETURNS TABLE (oid oid, name text, is_alone boolean, draws_no_number boolean, distributed text)
LANGUAGE sql STABLE AS $$
WITH RECURSIVE made AS MATERIALIZED (
    SELECT p.oid, p.proname, p.prosrc, p.proretset, p.prorettype,
           l.lanname = 'sql' AND p.prosrc ~ '(FROM|JOIN|INTO|UPDATE)\s+holdfast\.\w+\s' AS is_sql,
           p.prosrc ~ '/\* (alone:|distributed: )' AS has_conditions,
           p.proargnames[1] IN ('in_tenant', 'the_tenant') AND p.proargtypes[0] = 'text'::regtype
               AND p.prorettype <> 'trigger'::regtype AND NOT p.prosecdef AS has_tenant
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'holdfast'::regnamespace
        -- These ask the catalog and Citus, and write what follows here.
        AND p.proname NOT IN ('distributed_text', 'functions_by_tenant', 'distribution', 'shards_of_nodes')
), bound AS (
    SELECT string_agg(c.relname, '|') FILTER (WHERE i.attrelid IS NOT NULL) AS numbered,
           string_agg(c.relname, '|') FILTER (WHERE t.attrelid IS NULL) AS undivided
    FROM pg_catalog.pg_class c
    LEFT JOIN pg_catalog.pg_attribute i ON i.attrelid = c.oid AND i.attidentity <> ''
    LEFT JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant' AND NOT t.attisdropped
    WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r'
        AND c.relname NOT IN ('notice_key', 'task_edges')
), drawing AS (
    SELECT m.oid, m.proname FROM made m CROSS JOIN bound b
    WHERE m.prosrc ~ 'nextval\(|pg_advisory' OR m.prosrc ~ format('INTO holdfast\.(%s)\M', b.numbered)
        OR m.prosrc ~ format('holdfast\.(%s)\M', b.undivided)
    UNION
    SELECT m.oid, m.proname FROM made m JOIN drawing d
        ON m.prosrc ~ format('holdfast\.%s\(', d.proname)
)
SELECT m.oid, m.oid::regprocedure::text, m.is_sql OR m.has_conditions,
       m.has_tenant AND m.oid NOT IN (SELECT d.oid FROM drawing d),
       CASE WHEN m.is_sql THEN
           regexp_replace(
               replace(pg_get_functiondef(m.oid), m.prosrc, format(
                   CASE WHEN m.proretset THEN E'\n#variable_conflict use_column\nBEGIN RETURN QUERY %s; END\n'
                        WHEN r.is_row THEN E'\n#variable_conflict use_column\nDECLARE found record;\nBEGIN '
                            'FOR found IN %s LOOP RETURN found; END LOOP; RETURN NULL; END\n'
                        WHEN r.is_void THEN E'\n#variable_conflict use_column\nBEGIN %s; END\n'
                        ELSE E'\n#variable_conflict use_column\nBEGIN RETURN (%s); END\n' END,
                   CASE WHEN r.is_void THEN regexp_replace(r.body, '^SELECT\M', 'PERFORM') ELSE r.body END)),
               'LANGUAGE sql', 'LANGUAGE plpgsql')
       WHEN m.has_conditions THEN holdfast.distributed_text(pg_get_functiondef(m.oid))
       END
FROM made m
CROSS JOIN LATERAL (
    SELECT pg_get_function_result(m.oid) = 'void' AS is_void, t.typtype = 'c' AS is_row,
           btrim(holdfast.distributed_text(m.prosrc), E' \n;') AS body
    FROM pg_catalog.pg_type t WHERE t.oid = m.prorettype
) r
WHERE m.has_tenant OR m.is_sql OR m.has_conditions
$$;
REVOKE ALL ON FUNCTION holdfast.functions_by_tenant() FROM PUBLIC;

-- What of the schema is to be where, in the order in which it is distributed: tables with a tenant are
-- divided by it, co-located with sessions; a function whose first argument is the tenant runs where the
-- rows of that tenant are; small tables that all tenants share are copied to every node. Call it only
-- where the extension is installed.
CREATE OR REPLACE FUNCTION holdfast.distribution()
RETURNS TABLE (kind text, name text, wanted text, found text, statement text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT 'role', r.rolname::text, 'may log in', CASE WHEN r.rolcanlogin THEN 'may log in' ELSE 'may not log in' END,
           format('ALTER ROLE %I LOGIN', r.rolname)
    FROM pg_catalog.pg_roles r WHERE r.rolname IN ('holdfast_app', 'holdfast_keeper') ORDER BY 2;
    -- A statement that runs on a node may call a function that has statements of its own.
    RETURN QUERY
    SELECT 'setting', 'citus.allow_nested_distributed_execution', 'on',
           CASE WHEN EXISTS (
               SELECT FROM pg_catalog.pg_db_role_setting g
               WHERE g.setdatabase = d.oid AND g.setrole = 0
                   AND 'citus.allow_nested_distributed_execution=on' = ANY (g.setconfig)) THEN 'on' ELSE 'off' END,
           format('ALTER DATABASE %I SET citus.allow_nested_distributed_execution = on', d.datname)
    FROM pg_catalog.pg_database d WHERE d.datname = current_database();
    -- A worker does not know for which tenant the coordinator runs a statement, so no policy can hold there.
    RETURN QUERY
    SELECT 'policy', c.oid::regclass::text, 'off', CASE WHEN c.relrowsecurity THEN 'on' ELSE 'off' END,
           format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', c.oid::regclass)
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
    WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r'
    ORDER BY c.relname;
    -- The transactions of a tenant are numbered by the node that has its rows.
    RETURN QUERY
    SELECT 'feed', c.oid::regclass::text, 'numbered by its node',
           CASE WHEN EXISTS (
               SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = 'number_by_node')
               THEN 'numbered by its node' ELSE 'numbered by the coordinator' END,
           format('CREATE TRIGGER number_by_node BEFORE INSERT ON %s FOR EACH ROW '
                  'EXECUTE FUNCTION holdfast.number_by_node()', c.oid::regclass)
    FROM pg_catalog.pg_class c WHERE c.oid = 'holdfast.task_events'::regclass;
    RETURN QUERY
    SELECT 'table', t.name, t.wanted,
           CASE WHEN p.partmethod = 'h' THEN 'by tenant' WHEN p.partmethod = 'n' THEN 'on every node'
                ELSE 'on the coordinator' END,
           CASE t.wanted
               WHEN 'by tenant' THEN format(
                   'SELECT create_distributed_table(%L, ''tenant'', colocate_with => %L)', t.name,
                   CASE t.name WHEN 'holdfast.sessions' THEN 'none' ELSE 'holdfast.sessions' END)
               WHEN 'on every node' THEN format('SELECT create_reference_table(%L)', t.name)
           END
    FROM (
        SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name,
               CASE WHEN EXISTS (
                        SELECT FROM pg_catalog.pg_attribute a
                        WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped)
                    THEN 'by tenant'
                    WHEN c.relname IN ('function_files', 'migrations') THEN 'on the coordinator'
                    ELSE 'on every node' END AS wanted,
               EXISTS (SELECT FROM pg_catalog.pg_constraint k
                       WHERE k.confrelid = c.oid AND k.contype = 'f') AS is_referenced
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'holdfast' AND c.relkind = 'r'
    ) t LEFT JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = t.oid
    ORDER BY t.name = 'holdfast.sessions' DESC, t.is_referenced DESC, t.name;
    -- Citus plans no statement of a function in SQL that has parameters, and routes by conditions alone.
    RETURN QUERY
    SELECT 'form', f.name, 'distributed', CASE WHEN f.is_alone THEN 'alone' ELSE 'distributed' END, f.distributed
    FROM holdfast.functions_by_tenant() f
    ORDER BY f.name;
    -- A plan for any tenant would have to be one for all shards.
    RETURN QUERY
    SELECT 'plan', p.oid::regprocedure::text, 'for its tenant',
           CASE WHEN 'plan_cache_mode=force_generic_plan' = ANY (p.proconfig) THEN 'generic' ELSE 'for its tenant' END,
           format('ALTER FUNCTION %s RESET plan_cache_mode', p.oid::regprocedure)
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'holdfast'::regnamespace AND p.proconfig IS NOT NULL
    ORDER BY 2;
    RETURN QUERY
    SELECT 'function', f.name, f.wanted,
           CASE WHEN d.objid IS NULL THEN 'on the coordinator'
                WHEN d.distribution_argument_index IS NULL THEN 'on every node' ELSE 'by tenant' END,
           CASE f.wanted
               WHEN 'by tenant' THEN format(
                   'SELECT create_distributed_function(%L, %L, colocate_with => ''holdfast.sessions'')',
                   f.name, f.argument)
               ELSE format('SELECT create_distributed_function(%L)', f.name)
           END
    FROM (
        SELECT p.oid, p.oid::regprocedure::text AS name, p.proargnames[1] AS argument,
               p.prolang = (SELECT l.oid FROM pg_catalog.pg_language l WHERE l.lanname = 'sql') AS is_checked,
               CASE WHEN t.draws_no_number THEN 'by tenant' ELSE 'on every node' END AS wanted
        FROM pg_catalog.pg_proc p LEFT JOIN holdfast.functions_by_tenant() t ON t.oid = p.oid
        WHERE p.pronamespace = 'holdfast'::regnamespace
    ) f LEFT JOIN pg_catalog.pg_dist_object d
        ON d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.objsubid = 0
    -- A node checks the body of a function in SQL when it is made: what it calls has to be there.
    ORDER BY f.is_checked, f.name;
    -- A statement of a distributed table may call only what gives one value for its whole run. The clock is
    -- read where the statement is planned.
    RETURN QUERY
    SELECT 'clock', p.oid::regprocedure::text, 'stable', CASE p.provolatile WHEN 'v' THEN 'volatile' ELSE 'stable' END,
           format('ALTER FUNCTION %s STABLE', p.oid::regprocedure)
    FROM pg_catalog.pg_proc p WHERE p.oid = to_regprocedure('holdfast.now()');
END
$$;
REVOKE ALL ON FUNCTION holdfast.distribution() FROM PUBLIC;

-- Numbers a change of state by the transaction of the node that stores it.
CREATE OR REPLACE FUNCTION holdfast.number_by_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.written_by IS NOT NULL THEN
        NEW.written_by := pg_current_xact_id();
    END IF;
    RETURN NEW;
END
$$;

-- The nodes of the cluster and how many shards of the schema each has. Call it only where the extension is
-- installed.
CREATE OR REPLACE FUNCTION holdfast.shards_of_nodes()
RETURNS TABLE (node text, takes_shards boolean, shards bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT n.nodename || ':' || n.nodeport, n.shouldhaveshards, count(s.shardid)
    FROM pg_catalog.pg_dist_node n
    LEFT JOIN pg_catalog.pg_dist_placement l ON l.groupid = n.groupid
    LEFT JOIN pg_catalog.pg_dist_shard s ON s.shardid = l.shardid AND s.shardminvalue IS NOT NULL
        AND s.logicalrelid IN (
            SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace)
    WHERE n.noderole = 'primary' AND n.isactive
    GROUP BY n.nodename, n.nodeport, n.shouldhaveshards
    ORDER BY 1;
END
$$;

-- Whether a table with a tenant that is not distributed has rows. Call it only where the extension is
-- installed.
CREATE OR REPLACE FUNCTION holdfast.filled_tables() RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    place text;
    filled boolean;
BEGIN
    FOR place IN
        SELECT d.name FROM holdfast.distribution() d
        WHERE d.kind = 'table' AND d.wanted = 'by tenant' AND d.found <> d.wanted
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', place) INTO filled;
        IF filled THEN
            RETURN NEXT place;
        END IF;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION holdfast.filled_tables() FROM PUBLIC;

-- Let the roles read the views of the schema on every worker too: Citus copies views without their rights. Safe
-- to repeat. Raises what a worker answers. Call it only where the extension is installed.
CREATE OR REPLACE FUNCTION holdfast.grant_views_on_workers() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place record;
    answer record;
BEGIN
    FOR place IN
        SELECT format('SET citus.enable_ddl_propagation = off; GRANT SELECT ON %s TO %I', c.oid::regclass, r.rolname)
            AS statement
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_roles r ON r.rolname IN ('holdfast_app', 'holdfast_reader')
        WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'v'
    LOOP
        FOR answer IN SELECT w.success, w.result FROM run_command_on_workers(place.statement) w LOOP
            IF NOT answer.success THEN
                RAISE EXCEPTION 'a worker refused %: %', place.statement, answer.result;
            END IF;
        END LOOP;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION holdfast.grant_views_on_workers() FROM PUBLIC;
