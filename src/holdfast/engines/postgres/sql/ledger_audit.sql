-- name: events
-- The events of a task above a cursor.
SELECT e.*
FROM holdfast.tasks t
JOIN holdfast.task_events e ON e.tenant = t.tenant AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3) AND e.seq > $4
ORDER BY e.seq LIMIT $5;

-- name: events_within
-- The same, as many as fit so many bytes ($6), but always the first one.
SELECT f.*
FROM holdfast.tasks t
CROSS JOIN LATERAL (
    SELECT l.*, sum(coalesce(octet_length(l.body), 0) + coalesce(octet_length(l.metadata), 0))
               OVER older AS so_far, row_number() OVER older AS place
    FROM (
        SELECT * FROM holdfast.task_events e
        WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq > $4
        ORDER BY e.seq LIMIT $5
    ) l
    WINDOW older AS (ORDER BY l.seq)
) f
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
    AND (f.so_far <= $6::bigint OR f.place = 1)
ORDER BY f.seq;

-- name: follow
-- Where a task is, with its next events above a cursor, or with none; no row without the task. As
-- many events as fit so many bytes ($6), but always one.
SELECT w.out_state, w.out_version, e.*
FROM holdfast.watch_task($1, $2, $3) w
LEFT JOIN LATERAL (
    SELECT l.*, sum(coalesce(octet_length(l.body), 0) + coalesce(octet_length(l.metadata), 0))
               OVER older AS so_far, row_number() OVER older AS place
    FROM (
        SELECT * FROM holdfast.task_events
        WHERE tenant = $1 AND task_id = $2 AND seq > $4
        ORDER BY seq LIMIT $5
    ) l
    WINDOW older AS (ORDER BY l.seq)
) e ON e.so_far <= $6::bigint OR e.place = 1
ORDER BY e.seq;

-- name: replay
-- The first events of a task, each with what never changes about it.
SELECT t.context_id, t.owner, t.agent, t.created_at, t.max_attempts, t.submit_key, t.retry_of,
       t.metadata AS task_metadata, t.result AS task_result, t.parent_id, e.*
FROM holdfast.tasks t
JOIN holdfast.task_events e ON e.tenant = t.tenant AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3) AND e.seq <= $4
ORDER BY e.seq;

-- name: append_feedback
-- Keep feedback on a task; the one that is kept.
SELECT * FROM holdfast.append_task_feedback($1, $2, $3, $4, $5, $6, $7, $8);

-- name: list_feedback
-- The feedback on a task, in order.
SELECT f.*
FROM holdfast.tasks t
JOIN holdfast.task_feedback f ON f.tenant = t.tenant AND f.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
ORDER BY f.given;
