-- name: is_there
-- Whether any migration was ever applied.
SELECT to_regclass('holdfast.migrations') IS NOT NULL;

-- name: applied
-- What was applied.
SELECT version, name, sha256 FROM holdfast.migrations ORDER BY version;

-- name: record
-- Remember a migration.
INSERT INTO holdfast.migrations (version, name, sha256) VALUES ($1, $2, $3);

-- name: lock
-- One migrating process at a time.
SELECT pg_advisory_lock($1);

-- name: unlock
-- The next one's turn.
SELECT pg_advisory_unlock($1);
