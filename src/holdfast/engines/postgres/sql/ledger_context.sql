-- name: list
-- A page of contexts, the newest first, after a cursor ($3, $4, $5); with the children of tasks, if
-- wanted ($7).
SELECT c.id, c.owner, c.created_at, n.tasks
FROM holdfast.task_contexts c
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE $7::boolean OR t.parent_id = '') AS tasks, count(*) AS all_tasks
    FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.context_key = c.key OFFSET 0
) n
WHERE c.tenant = $1 AND c.created_at > '-infinity'
    AND ($2::text IS NULL OR c.owner = $2)
    AND ($3::timestamptz IS NULL OR (c.created_at, c.id, c.owner) < ($3, $4::text, $5::text))
    AND ($7 OR n.tasks > 0 OR n.all_tasks = 0)
ORDER BY c.created_at DESC, c.id DESC, c.owner DESC LIMIT $6;

-- name: get
-- A context with its last messages ($4), which have no place in a task here.
SELECT c.id, c.owner, c.created_at, m.*, (
    SELECT count(*) FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.context_key = c.key
) AS tasks
FROM holdfast.task_contexts c
CROSS JOIN LATERAL (
    SELECT array_agg(o.message_id) AS message_ids, array_agg(o.written_at) AS message_times,
           array_agg(NULL::bigint) AS message_seqs, array_agg(o.body) AS message_bodies
    FROM (
        SELECT * FROM (
            SELECT e.message_id, e.written_at, e.stored, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = $1 AND e.context_key = c.key AND e.kind = 'message'
            ORDER BY e.stored DESC LIMIT $4
        ) newest ORDER BY stored
    ) o
) m
WHERE c.tenant = $1 AND c.owner = $2 AND c.id = $3;

-- name: get_within
-- The same with those of its last messages that fit so many bytes ($5); the newest always does.
SELECT c.id, c.owner, c.created_at, m.*, (
    SELECT count(*) FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.context_key = c.key
) AS tasks
FROM holdfast.task_contexts c
CROSS JOIN LATERAL (
    SELECT array_agg(o.message_id ORDER BY o.stored) FILTER (WHERE o.fits) AS message_ids,
           array_agg(o.written_at ORDER BY o.stored) FILTER (WHERE o.fits) AS message_times,
           array_agg(NULL::bigint) FILTER (WHERE o.fits) AS message_seqs,
           array_agg(o.body ORDER BY o.stored) FILTER (WHERE o.fits) AS message_bodies,
           coalesce(bool_or(NOT o.fits), false) AS truncated
    FROM (
        SELECT l.*, sum(octet_length(l.body)) OVER newer <= $5::bigint
                   OR row_number() OVER newer = 1 AS fits
        FROM (
            SELECT e.message_id, e.written_at, e.stored, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = $1 AND e.context_key = c.key AND e.kind = 'message'
            ORDER BY e.stored DESC LIMIT $4
        ) l
        WINDOW newer AS (ORDER BY l.stored DESC)
    ) o
) m
WHERE c.tenant = $1 AND c.owner = $2 AND c.id = $3;

-- name: clear
-- Remove a context with its tasks.
SELECT holdfast.clear_task_context($1, $2, $3);
