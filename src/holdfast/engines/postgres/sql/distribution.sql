-- name: installed
-- The version of Citus in this database, and what this server could install.
SELECT (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'citus') AS installed,
       (SELECT a.default_version FROM pg_catalog.pg_available_extensions a
        WHERE a.name = 'citus') AS available,
       current_setting('shared_preload_libraries') AS preloaded;

-- name: known
-- Whether the schema has the functions below.
SELECT to_regprocedure('holdfast.distribution()') IS NOT NULL;

-- name: steps
-- What of the schema is to be where, and where it is.
SELECT kind, name, wanted, found, statement FROM holdfast.distribution();

-- name: nodes
-- The nodes, and how many shards each has.
SELECT node, takes_shards, shards FROM holdfast.shards_of_nodes();

-- name: filled
-- Tables that are to be distributed and have rows.
SELECT name FROM holdfast.filled_tables() AS name;

-- name: prepare_session
-- Triggers of ours write rows of their own tenant only, and tables are distributed one after another.
SELECT set_config('citus.enable_unsafe_triggers', 'on', false),
       set_config('citus.multi_shard_modify_mode', 'sequential', false);

-- name: grant_views
-- Let the roles read the views on every worker.
SELECT holdfast.grant_views_on_workers();
