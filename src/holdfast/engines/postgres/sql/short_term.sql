-- name: read
-- A state with its version and its expiry.
SELECT state::text AS state, version, expires_at
FROM holdfast.states
WHERE tenant = $1 AND session_id = $2 AND (expires_at IS NULL OR expires_at > holdfast.now());

-- name: read_many
-- The states of some sessions.
SELECT session_id, state::text AS state, version, expires_at
FROM holdfast.states
WHERE tenant = $1 AND session_id = ANY ($2::text[])
  AND (expires_at IS NULL OR expires_at > holdfast.now());

-- name: read_key
-- The value of one key, or NULL: the hot read of a single field.
SELECT state ->> $3 AS state, version, expires_at
FROM holdfast.states
WHERE tenant = $1 AND session_id = $2 AND (expires_at IS NULL OR expires_at > holdfast.now());

-- name: read_keys
-- The values of some keys, in their order; NULL where there is none.
SELECT ARRAY(
           SELECT s.state ->> k.key
           FROM unnest($3::text[]) WITH ORDINALITY AS k (key, at) ORDER BY k.at
       ) AS state, s.version, s.expires_at
FROM holdfast.states s
WHERE s.tenant = $1 AND s.session_id = $2
  AND (s.expires_at IS NULL OR s.expires_at > holdfast.now());

-- name: write
-- Replace a state ($6), or merge keys into it and drop others; the window is kept or set anew, and $7
-- versions are kept. Returns the new version.
INSERT INTO holdfast.states AS s
    (tenant, session_id, state, ttl_seconds, written_at, expires_at, kept_versions)
SELECT $1, $2, $3::text::jsonb, $4::double precision, clock.now,
       clock.now + make_interval(secs => $4), $7
FROM (SELECT holdfast.now() AS now OFFSET 0) clock
ON CONFLICT (tenant, session_id) DO UPDATE SET
    state = CASE WHEN $6 OR s.expires_at <= excluded.written_at THEN excluded.state
                 ELSE (s.state - $5::text[]) || excluded.state END,
    version = GREATEST(s.version + 1, excluded.version),
    ttl_seconds = CASE WHEN excluded.ttl_seconds IS NOT NULL OR s.expires_at <= excluded.written_at
                       THEN excluded.ttl_seconds ELSE s.ttl_seconds END,
    written_at = excluded.written_at,
    kept_versions = excluded.kept_versions,
    expires_at = CASE WHEN excluded.ttl_seconds IS NOT NULL OR s.expires_at <= excluded.written_at
                      THEN excluded.expires_at
                      ELSE holdfast.seconds_after(excluded.written_at, s.ttl_seconds) END
RETURNING s.version;

-- name: write_at_version
-- The same, if the state is at the expected version.
SELECT holdfast.put_state($1, $2, $3::text::jsonb, $4, $5::text[], $6, $8, $7);

-- name: versions
-- The versions of a state that are kept, before one ($3), the newest first.
SELECT e.version, e.written_at FROM holdfast.earlier_states e
WHERE e.tenant = $1 AND e.session_id = $2 AND NOT e.saved AND e.version < $3
  AND EXISTS (
      SELECT FROM holdfast.states s
      WHERE s.tenant = $1 AND s.session_id = $2 AND (s.expires_at IS NULL OR s.expires_at > holdfast.now()))
ORDER BY e.version DESC LIMIT $4;

-- name: read_version
-- A version of a state ($3), with the expiry of the state.
SELECT coalesce(e.state, s.state::text) AS state, $3::bigint AS version, s.expires_at
FROM holdfast.states s
LEFT JOIN holdfast.earlier_states e
    ON e.tenant = $1 AND e.session_id = $2 AND NOT e.saved AND e.version = $3
WHERE s.tenant = $1 AND s.session_id = $2 AND (s.expires_at IS NULL OR s.expires_at > holdfast.now())
  AND (e.version = $3 OR s.version = $3);

-- name: clear
-- Remove a state.
DELETE FROM holdfast.states WHERE tenant = $1 AND session_id = $2;

-- name: purge
-- Remove states that have expired, of all tenants, a batch at a time; how many there were.
WITH due AS MATERIALIZED (
    SELECT tenant, session_id FROM holdfast.states
    WHERE expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.states s USING due
    WHERE s.tenant = due.tenant AND s.session_id = due.session_id
    RETURNING 1
)
SELECT count(*) FROM gone;
