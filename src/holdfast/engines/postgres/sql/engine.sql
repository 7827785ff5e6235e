-- name: ping
-- Whether the server answers.
SELECT 1;

-- name: settings
-- What decides about durability, and what the server is.
SELECT current_setting('server_version_num')::int AS version,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector') AS pgvector,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'age') AS age,
       (SELECT count(*) > 0 FROM pg_catalog.pg_available_extensions WHERE name = 'age') AS age_available;
