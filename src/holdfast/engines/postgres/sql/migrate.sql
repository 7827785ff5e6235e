-- name: is_there
-- Whether any migration was ever applied.
SELECT to_regclass('holdfast.migrations') IS NOT NULL;

-- name: applied
-- What was applied.
SELECT version, name, sha256 FROM holdfast.migrations ORDER BY version;

-- name: record
-- Remember a migration.
INSERT INTO holdfast.migrations (version, name, sha256) VALUES ($1, $2, $3);

-- name: records_functions
-- Whether the database records which functions it has.
SELECT to_regclass('holdfast.function_files') IS NOT NULL;

-- name: applied_functions
-- Which version of each file of functions is applied.
SELECT name, version, sha256 FROM holdfast.function_files;

-- name: check_no_bodies
-- Let a function name what is created after it.
SET LOCAL check_function_bodies = off;

-- name: record_functions
-- Remember a file of functions.
INSERT INTO holdfast.function_files (name, version, sha256) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET
    version = excluded.version, sha256 = excluded.sha256, applied_at = now();

-- name: statement_timeout
-- How long a statement may take in this session.
SELECT current_setting('statement_timeout');

-- name: set_statement_timeout
-- Change it for the session; 0 is no limit.
SELECT set_config('statement_timeout', $1, false);

-- name: lock
-- One migrating process at a time: whether it is this one.
SELECT pg_try_advisory_lock($1);

-- name: drop_broken
-- What drops the indexes of a migration ($1 its text) whose concurrent creation was interrupted: they exist,
-- and no statement uses them.
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS holdfast.%I', c.relname)
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = to_regnamespace('holdfast') AND NOT i.indisvalid
    AND c.relname = ANY (regexp_split_to_array($1, '[^a-z0-9_]+'));

-- name: prepare_citus
-- On a database that Citus distributes: a function that several nodes have is created over one connection to each.
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', false),
       set_config('citus.enable_unsafe_triggers', 'on', false)
FROM pg_catalog.pg_extension e WHERE e.extname = 'citus';

-- name: unlock
-- The next one's turn.
SELECT pg_advisory_unlock($1);

-- name: confine
-- Confine the tables to the tenant of a statement, those that are not, once there is what does it.
DO $$
BEGIN
    IF to_regprocedure('holdfast.confine_tables()') IS NOT NULL THEN
        PERFORM holdfast.confine_tables();
    END IF;
END
$$;
