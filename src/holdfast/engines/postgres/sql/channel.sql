-- name: publish
-- Append an event, or find the one with the same id.
SELECT out_number AS number, out_published_at AS published_at
FROM holdfast.publish($1, $2, $3, $4, $5);

-- name: read
-- The newest number, and the events after a number: one row for each, or one without an event.
SELECT c.newest, e.number, e.id, e.event, e.published_at
FROM (
    SELECT coalesce(
        (SELECT newest FROM holdfast.channels WHERE tenant = $1 AND name = $2), 0) AS newest
) c
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.channel_events
    WHERE tenant = $1 AND channel = $2 AND number > $3
      AND expires_at > (SELECT holdfast.now())
    ORDER BY number LIMIT $4
) e ON true
ORDER BY e.number;

-- name: clear
-- Remove all events; the newest number stays.
DELETE FROM holdfast.channel_events WHERE tenant = $1 AND channel = $2;

-- name: newest
-- The number of the newest event that ever was.
SELECT newest FROM holdfast.channels WHERE tenant = $1 AND name = $2;

-- name: notice_key
-- The key of the digests that notices carry.
SELECT key FROM holdfast.notice_key;

-- name: echo
-- A notice to ourselves, to know whether notices arrive.
SELECT pg_notify('holdfast', $1);

-- name: purge
-- Remove events that have expired, of all tenants, a batch at a time; how many there were.
WITH due AS MATERIALIZED (
    SELECT tenant, channel, number FROM holdfast.channel_events
    WHERE expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.channel_events e USING due
    WHERE e.tenant = due.tenant AND e.channel = due.channel AND e.number = due.number
    RETURNING 1
)
SELECT count(*) FROM gone;
