-- name: write
-- Add a write to what is here of a session: $3 replaces the state, $4 removes it, $5 values, $6 keys
-- that go, $7 window. One that is over begins anew.
INSERT INTO holdfast.state_asides AS a
    (tenant, session_id, fresh, cleared, gone, state, dropped, ttl_seconds)
VALUES ($1, $2, $3, $4, $4, $5::text::jsonb, $6::text[], $7)
ON CONFLICT (tenant, session_id) DO UPDATE SET
    (stamp, written_at, fresh, cleared, gone, state, dropped, ttl_seconds) = (
        SELECT nextval('holdfast.state_aside_stamps'), excluded.written_at,
            excluded.fresh OR a.fresh OR was.over,
            excluded.cleared OR a.cleared OR was.over,
            excluded.gone,
            CASE WHEN excluded.fresh OR was.over THEN excluded.state
                ELSE (a.state - excluded.dropped) || excluded.state END,
            CASE WHEN excluded.fresh OR was.over THEN '{}'
                ELSE ARRAY(
                    SELECT DISTINCT key FROM unnest(a.dropped || excluded.dropped) key
                    WHERE NOT excluded.state ? key) END,
            CASE WHEN excluded.cleared OR was.over OR excluded.ttl_seconds IS NOT NULL
                THEN excluded.ttl_seconds ELSE a.ttl_seconds END
        FROM (SELECT COALESCE(
            a.written_at + make_interval(secs => a.ttl_seconds) <= excluded.written_at,
            false) AS over) was)
RETURNING a.stamp;

-- name: read
-- What is here of a session.
SELECT session_id, stamp, fresh, cleared, gone, state::text, dropped, ttl_seconds, written_at,
    holdfast.now()
FROM holdfast.state_asides WHERE tenant = $1 AND session_id = $2;

-- name: waiting
-- Sessions that Redis does not have all of, the oldest write first.
SELECT * FROM holdfast.sessions_aside($1);

-- name: merged
-- Redis has it: forget it, unless more was written since.
DELETE FROM holdfast.state_asides WHERE tenant = $1 AND session_id = $2 AND stamp = $3;
