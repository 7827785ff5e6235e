-- name: recent_in_session
-- The newest events of an agent in one session, the newest first: $4 types or NULL, $5 limit.
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    ORDER BY i.epoch DESC, i.seq DESC OFFSET 0  -- in the order of the log, filtered on the way
) e
WHERE e.agent = $3 AND ($4::text[] IS NULL OR e.type = ANY ($4))
LIMIT $5;

-- name: recent
-- The newest events of an agent in all sessions, the newest first: $3 types or NULL, $4 limit.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
JOIN holdfast.sessions s ON s.tenant = e.tenant AND s.key = e.session_key
WHERE e.tenant = $1 AND e.agent = $2 AND ($3::text[] IS NULL OR e.type = ANY ($3))
ORDER BY e.occurred_at DESC, s.id DESC, e.epoch DESC, e.seq DESC
LIMIT $4;

-- name: between_in_session
-- A span of time in one session, after a place: $6 limit, $7 types, $8 epoch, $9 seq.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.sessions s
JOIN holdfast.events e ON e.tenant = s.tenant AND e.session_key = s.key
WHERE s.tenant = $1 AND s.id = $2 AND (e.agent || '') = $3
    AND e.occurred_at >= $4 AND e.occurred_at < $5
    AND ($7::text[] IS NULL OR e.type = ANY ($7))
    AND ($8::int IS NULL OR (e.epoch, e.seq) > ($8, $9::bigint))
ORDER BY e.epoch, e.seq
LIMIT $6;

-- name: between
-- A span of time in all sessions, after a place: $5 limit, $6 types, $7 to $10 the place.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
JOIN holdfast.sessions s ON s.tenant = e.tenant AND s.key = e.session_key
WHERE e.tenant = $1 AND e.agent = $2
    AND e.occurred_at >= GREATEST($3, $7::timestamptz) AND e.occurred_at < $4
    AND ($6::text[] IS NULL OR e.type = ANY ($6))
    AND ($7::timestamptz IS NULL
         OR (e.occurred_at, s.id, e.epoch, e.seq) > ($7, $8::text, $9::int, $10::bigint))
ORDER BY e.occurred_at, s.id, e.epoch, e.seq
LIMIT $5;

-- name: start_session
-- Begin a session, or take up one that is there: $4 metadata or NULL.
INSERT INTO holdfast.sessions AS s (tenant, id, agent, started_at, metadata)
VALUES ($1, $2, $3, holdfast.now(), COALESCE($4, '{}'))
ON CONFLICT (tenant, id) DO UPDATE SET ended_at = NULL, metadata = COALESCE($4, s.metadata)
RETURNING id, agent, started_at, ended_at, metadata;

-- name: end_session
-- Mark a session as ended; the first end stays.
UPDATE holdfast.sessions SET ended_at = COALESCE(ended_at, holdfast.now())
WHERE tenant = $1 AND id = $2
RETURNING id, agent, started_at, ended_at, metadata;

-- name: get_session
-- One session.
SELECT id, agent, started_at, ended_at, metadata
FROM holdfast.sessions WHERE tenant = $1 AND id = $2;

-- name: list_sessions
-- Sessions that an agent started, newest first, after a place: $3 limit, $4 and $5 the place.
SELECT id, agent, started_at, ended_at, metadata
FROM holdfast.sessions
WHERE tenant = $1 AND agent = $2
    AND ($4::timestamptz IS NULL OR (started_at, id) < ($4, $5::text))
ORDER BY started_at DESC, id DESC
LIMIT $3;

-- name: clear
-- Remove events: $3 agent, $4 run, $5 types, each NULL for all.
SELECT holdfast.clear_events($1, $2, $3, $4, $5);

