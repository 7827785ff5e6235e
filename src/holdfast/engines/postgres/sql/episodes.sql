-- Reads of a session go through its log in order and filter on the way; limits are hidden from the
-- planner, and filters by type and payload are in a statement only where they are asked for (history.sql
-- and recall.sql say why). Where all agents are asked for, another condition stands in place of the one
-- that names the agent: event_scope.py has it.

-- name: recent_in_session
-- The newest events of an agent in one session, the newest first: $4 types, $5 limit or NULL, $6 and $7
-- the filter of payloads, $8 the number that they come after.
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
        AND i.epoch >= 0 AND i.seq > (SELECT $8::bigint)
    ORDER BY i.epoch DESC, i.seq DESC OFFSET 0
) e
WHERE /* whose */ e.agent = (SELECT $3::text) AND ((/* all */ TRUE) OR (
    ($4::text[] IS NULL OR e.type = ANY ($4))
    AND ($6::text IS NULL OR holdfast.payload_fits(
        e.filterable, e.body, (SELECT $6::text::jsonpath), (SELECT $7::text::jsonb)))))
LIMIT (SELECT $5::bigint);

-- name: recent
-- The newest events of an agent in all sessions, the newest first: $3 types, $4 limit, $5 and $6 the
-- filter of payloads. Of equal times all are read, since the sessions' ids decide.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events e
    WHERE e.tenant = $1 AND /* whose */ e.agent = $2
        AND ((/* all */ TRUE) OR (
            ($3::text[] IS NULL OR e.type = ANY ($3))
            AND ($5::text IS NULL OR holdfast.payload_fits(
                e.filterable, e.body, (SELECT $5::text::jsonpath), (SELECT $6::text::jsonb)))))
    ORDER BY e.occurred_at DESC FETCH FIRST (SELECT $4::bigint) ROWS WITH TIES
) e
JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
ORDER BY e.occurred_at DESC, s.id DESC, e.epoch DESC, e.seq DESC
LIMIT (SELECT $4);

-- name: between_in_session
-- A span of time in one session, after a place: $6 limit, $7 types, $8 epoch, $9 seq or NULL, $10 and
-- $11 the filter of payloads.
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
        AND (i.epoch, i.seq) > ((SELECT COALESCE($8::int, 0)), (SELECT COALESCE($9::bigint, 0)))
    ORDER BY i.epoch, i.seq OFFSET 0
) e
WHERE /* whose */ e.agent = (SELECT $3::text)
    AND e.occurred_at >= (SELECT $4::timestamptz) AND e.occurred_at < (SELECT $5::timestamptz)
    AND ((/* all */ TRUE) OR (
        ($7::text[] IS NULL OR e.type = ANY ($7))
        AND ($10::text IS NULL OR holdfast.payload_fits(
            e.filterable, e.body, (SELECT $10::text::jsonpath), (SELECT $11::text::jsonb)))))
LIMIT (SELECT $6::bigint);

-- name: between
-- A span of time in all sessions, after a place: $5 limit, $6 types, $7 to $10 the place, $11 and $12
-- the filter of payloads. Of the last time all events are read, since the sessions' ids decide.
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events e
    WHERE e.tenant = $1 AND /* whose */ e.agent = $2
        AND e.occurred_at >= GREATEST($3, $7::timestamptz) AND e.occurred_at < $4
        AND ((/* all */ TRUE) OR (
            ($6::text[] IS NULL OR e.type = ANY ($6))
            AND ($11::text IS NULL OR holdfast.payload_fits(
                e.filterable, e.body, (SELECT $11::text::jsonpath), (SELECT $12::text::jsonb)))))
        AND ($7::timestamptz IS NULL OR e.occurred_at > $7 OR (
            SELECT (s.id, e.epoch, e.seq) > ($8::text, $9::int, $10::bigint)
            FROM holdfast.sessions s WHERE s.tenant = $1 AND s.key = e.session_key))
    ORDER BY e.occurred_at FETCH FIRST (SELECT $5::bigint) ROWS WITH TIES
) e
JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
ORDER BY e.occurred_at, s.id, e.epoch, e.seq
LIMIT (SELECT $5);

-- name: get
-- Events of a session by their ids.
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    AND e.id = ANY ($3::text[]);

-- name: start_session
-- Begin a session, or take up one that is there: $4 metadata or NULL, $5 whom it is about or NULL. No row
-- if it is there and about somebody else, or if a deleted one was.
INSERT INTO holdfast.sessions AS s (tenant, id, agent, started_at, metadata, subject)
VALUES ($1, $2, $3, holdfast.now(), COALESCE($4, '{}'), $5)
ON CONFLICT (tenant, id) DO UPDATE SET
    ended_at = NULL, metadata = COALESCE($4, s.metadata), deleted_at = NULL,
    agent = CASE WHEN s.deleted_at IS NULL THEN s.agent ELSE excluded.agent END,
    started_at = CASE WHEN s.deleted_at IS NULL THEN s.started_at ELSE excluded.started_at END,
    subject = COALESCE(s.subject, CASE WHEN s.deleted_at IS NOT NULL THEN excluded.subject END)
WHERE excluded.subject IS NULL OR s.subject = excluded.subject
    OR s.subject IS NULL AND s.deleted_at IS NOT NULL
RETURNING id, agent, started_at, ended_at, metadata, parent, parent_at, subject;

-- name: end_session
-- Mark a session as ended; the first end stays, also if the clock went back. Citus reads no clock in a
-- COALESCE.
UPDATE holdfast.sessions SET ended_at = LEAST(ended_at, GREATEST(ended_at, holdfast.now()))
WHERE tenant = $1 AND id = $2 AND deleted_at IS NULL
RETURNING id, agent, started_at, ended_at, metadata, parent, parent_at, subject;

-- name: get_session
-- One session.
SELECT id, agent, started_at, ended_at, metadata, parent, parent_at, subject
FROM holdfast.sessions WHERE tenant = $1 AND id = $2 AND deleted_at IS NULL;

-- name: list_sessions
-- Sessions that an agent started, newest first, after a place: $3 limit, $4 and $5 the place, $6 and $7 the
-- filter of their metadata. Where all agents are asked for, another condition stands in place of the one
-- that names the agent: episodes.py has it.
SELECT s.id, s.agent, s.started_at, s.ended_at, s.metadata, NULL::timestamptz AS last_active_at,
       s.parent, s.parent_at, s.subject
FROM holdfast.sessions s
WHERE s.tenant = $1 AND /* whose */ s.agent = $2 AND s.deleted_at IS NULL
    AND s.started_at > '-infinity'
    AND ($4::timestamptz IS NULL OR (s.started_at, s.id) < ($4, $5::text))
    AND ($6::text IS NULL OR holdfast.payload_fits(
        NULL, s.metadata, (SELECT $6::text::jsonpath), (SELECT $7::text::jsonb)))
ORDER BY s.started_at DESC, s.id DESC
LIMIT (SELECT $3::bigint);

-- name: list_sessions_with_states
-- The same, and after them, once each, the states whose ids their metadata has in a list under the key $8, each
-- with the prefix $9.
WITH page AS MATERIALIZED (
    SELECT s.id, s.agent, s.started_at, s.ended_at, s.metadata, NULL::timestamptz AS last_active_at,
           s.parent, s.parent_at, s.subject
    FROM holdfast.sessions s
    WHERE s.tenant = $1 AND /* whose */ s.agent = $2 AND s.deleted_at IS NULL
    AND s.started_at > '-infinity'
        AND ($4::timestamptz IS NULL OR (s.started_at, s.id) < ($4, $5::text))
        AND ($6::text IS NULL OR holdfast.payload_fits(
            NULL, s.metadata, (SELECT $6::text::jsonpath), (SELECT $7::text::jsonb)))
    ORDER BY s.started_at DESC, s.id DESC
    LIMIT (SELECT $3::bigint)
)
SELECT p.*, NULL::text AS session_id, NULL::text AS state, NULL::bigint AS version,
       NULL::timestamptz AS expires_at
FROM page p
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, st.session_id, st.state::text, st.version,
       st.expires_at
FROM holdfast.states st
WHERE st.tenant = $1
  AND st.session_id IN (
      SELECT $9::text || named.id
      FROM (
          -- jsonb has no U+0000, and no id has it.
          SELECT replace(replace(replace(
              page.metadata, '\\', E'\x02'), '\u0000', '\u0001'), E'\x02', '\\')::jsonb -> $8::text AS ids
          FROM page
      ) p
      CROSS JOIN LATERAL jsonb_array_elements_text(
          CASE jsonb_typeof(p.ids) WHEN 'array' THEN p.ids ELSE '[]' END) AS named (id))
  AND (st.expires_at IS NULL OR st.expires_at > holdfast.now());

-- name: list_active_sessions
-- The same, by the time of their newest event, or that of their start where there is none.
SELECT s.id, s.agent, s.started_at, s.ended_at, s.metadata, s.last_active_at, s.parent,
       s.parent_at, s.subject
FROM (
    SELECT s.*, COALESCE((
        SELECT e.occurred_at FROM holdfast.events e
        WHERE e.tenant = $1 AND e.session_key = s.key ORDER BY e.epoch DESC, e.seq DESC LIMIT 1
    ), s.started_at) AS last_active_at
    FROM holdfast.sessions s
    WHERE s.tenant = $1 AND /* whose */ s.agent = $2 AND s.deleted_at IS NULL
    AND s.started_at > '-infinity'
        AND ($6::text IS NULL OR holdfast.payload_fits(
            NULL, s.metadata, (SELECT $6::text::jsonpath), (SELECT $7::text::jsonb)))
) s
WHERE $4::timestamptz IS NULL OR (s.last_active_at, s.id) < ($4, $5::text)
ORDER BY s.last_active_at DESC, s.id DESC
LIMIT (SELECT $3::bigint);

-- name: fork
-- Copy the log of a session $2 up to the number $3, or all of it, into a new session $4.
SELECT * FROM holdfast.fork_session($1, $2, $3, $4);

-- name: delete_session
-- Delete a session with its log.
SELECT * FROM holdfast.delete_session($1, $2);

-- name: delete_events
-- Delete events of a session by their ids.
SELECT * FROM holdfast.delete_events($1, $2, $3);

-- name: purge_sessions
-- Forget sessions that were deleted a week ago, of all tenants, a batch at a time; how many there were.
WITH due AS MATERIALIZED (
    SELECT tenant, key FROM holdfast.sessions
    WHERE deleted_at <= (SELECT holdfast.now()) - interval '7 days'
    ORDER BY deleted_at LIMIT $1 FOR UPDATE SKIP LOCKED
), buried AS (
    DELETE FROM holdfast.session_tombstones t USING due
    WHERE t.tenant = due.tenant AND t.session_key = due.key
), gone AS (
    DELETE FROM holdfast.sessions s USING due
    WHERE s.tenant = due.tenant AND s.key = due.key
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: clear
-- Remove events: $3 agent, $4 run, $5 types, each NULL for all.
SELECT holdfast.clear_events($1, $2, $3, $4, $5);

-- name: agents
-- A page of the agents that have events, after $2, in the ranges $3 to $4 and from $5 on. It goes from
-- agent to agent in the index, however many events each has.
WITH RECURSIVE one AS (
    (SELECT e.agent FROM holdfast.events e
     WHERE e.tenant = $1 AND e.agent > $2 AND e.agent >= $3 AND e.agent < $4
     ORDER BY e.agent LIMIT 1)
    UNION ALL
    SELECT (SELECT e.agent FROM holdfast.events e
            WHERE e.tenant = $1 AND e.agent > one.agent AND e.agent < $4 ORDER BY e.agent LIMIT 1)
    FROM one WHERE one.agent IS NOT NULL
), rest AS (
    (SELECT e.agent FROM holdfast.events e
     WHERE e.tenant = $1 AND e.agent > $2 AND e.agent >= $5 ORDER BY e.agent LIMIT 1)
    UNION ALL
    SELECT (SELECT e.agent FROM holdfast.events e
            WHERE e.tenant = $1 AND e.agent > rest.agent ORDER BY e.agent LIMIT 1)
    FROM rest WHERE rest.agent IS NOT NULL
)
SELECT agent FROM (
    (SELECT agent FROM one WHERE agent IS NOT NULL LIMIT $6)
    UNION ALL
    (SELECT agent FROM rest WHERE agent IS NOT NULL LIMIT $6)
) found ORDER BY agent LIMIT $6;
