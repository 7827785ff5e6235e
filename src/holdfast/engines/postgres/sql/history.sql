-- A session is read in the order of its log and filtered on the way (OFFSET 0 keeps the two apart):
-- a planner that took agent and session for independent would expect next to nothing, and read and
-- sort the whole session for the last twenty messages. `e.agent || ''` keeps it from the index of the
-- agent's times. Limits and filters are hidden in a SELECT: a planner that sees their values takes a
-- plan for these to be so much better than one for all that it makes a new one for every call, and
-- that costs as much as the read. Each epoch is at least 0: it says so where a number has a lower
-- bound, since a planner that has to skip from epoch to epoch reads and sorts the session instead.

-- name: append_one
-- One message of a transcript.
SELECT * FROM holdfast.store_event($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: append_to_session
-- A batch of one session, all or nothing.
SELECT * FROM holdfast.store_session_events($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: append_messages
-- The same, for a caller that does not need the positions.
SELECT count(*) FROM holdfast.store_session_events($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: append_many
-- A batch that spans sessions, all or nothing.
SELECT * FROM holdfast.store_events($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: append_embedded
-- A batch of events with their vectors: $10 all numbers, $11 the dimension.
SELECT * FROM holdfast.store_embedded_events(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: append_with_states
-- A batch of events with or without vectors ($10, $11), and patches of states ($12 to $17), all or nothing.
SELECT * FROM holdfast.store_events_and_kept_states(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: page
-- A page from the oldest: $3 agent, $4 limit, $5 offset, $6 the cursor.
SELECT e.body, e.id, e.occurred_at, e.seq
FROM (
    SELECT i.body, i.id, i.occurred_at, i.seq, i.agent, i.type FROM holdfast.events i
    WHERE i.tenant = $1 AND i.epoch >= 0 AND i.seq > $6
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    ORDER BY i.epoch, i.seq OFFSET 0
) e
WHERE e.agent = (SELECT $3::text) AND e.type = 'message'
LIMIT (SELECT $4::bigint) OFFSET (SELECT $5::bigint);

-- name: newest
-- The newest $4 messages, the newest first.
SELECT e.body, e.id, e.occurred_at, e.seq
FROM (
    SELECT i.body, i.id, i.occurred_at, i.seq, i.agent, i.type FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    ORDER BY i.epoch DESC, i.seq DESC OFFSET 0
) e
WHERE e.agent = (SELECT $3::text) AND e.type = 'message'
LIMIT (SELECT $4::bigint);

-- name: count
-- How many messages.
SELECT count(*)
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    AND (e.agent || '') = $3 AND e.type = 'message';

-- name: pop
-- Remove the newest message of an agent, and return it.
SELECT * FROM holdfast.pop_message($1, $2, $3);

-- name: replace_tail
-- Put messages in the place of those after a number: $4 the number, $5 the number that the newest message
-- must have, $6 to $10 the messages.
SELECT * FROM holdfast.replace_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: clear
-- Remove messages: $3 agent, $4 run or NULL.
SELECT holdfast.clear_events($1, $2, $3, $4, ARRAY['message']);
