-- name: get
-- A task with its last messages ($4) and, if wanted ($5), its artifacts.
SELECT r.*, m.*, a.*
FROM holdfast.linked_task_records r
CROSS JOIN LATERAL holdfast.task_messages(r.tenant, r.id, $4) m
CROSS JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $5::boolean THEN r.id END, NULL) a
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);

-- name: get_within
-- The same within so many bytes ($6): artifacts all or none, then the newest messages that fit.
SELECT r.*, m.*, a.*, s.dropped OR m.messages_cut AS truncated
FROM holdfast.linked_task_records r
CROSS JOIN LATERAL holdfast.task_artifacts_within(
    r.tenant, CASE WHEN $5::boolean THEN r.id END, $6::bigint) s
CROSS JOIN LATERAL holdfast.task_messages_within(
    r.tenant, r.id, $4, $6 - CASE WHEN s.dropped THEN 0 ELSE s.bytes END) m
CROSS JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $5 AND NOT s.dropped THEN r.id END, NULL) a
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);

-- name: message_bytes
-- How many bytes the messages of a task take.
SELECT coalesce(sum(octet_length(e.body)), 0)::bigint
FROM holdfast.tasks t
JOIN holdfast.task_events e
    ON e.tenant = $1 AND e.task_id = t.id AND e.kind = 'message'
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3);

-- name: list
-- A page of tasks, the last changed first, after a cursor ($11, $12); with how many match in all, if
-- wanted ($16), in at least one row, and with the first message of each, if wanted ($17). Children of
-- tasks are among them, if wanted ($18).
WITH matching AS NOT MATERIALIZED (
    SELECT t.id, t.updated_at FROM holdfast.matching_tasks(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $18) t
), page AS MATERIALIZED (
    SELECT c.id, c.updated_at FROM matching c
    WHERE $11::timestamptz IS NULL OR (c.updated_at, c.id) < ($11, $12::text)
    ORDER BY c.updated_at DESC, c.id DESC LIMIT $13
)
SELECT CASE WHEN $16::boolean THEN (SELECT count(*) FROM matching) END AS total, r.*, m.*, a.*, f.*
FROM (VALUES (1)) one
LEFT JOIN page p ON true
-- Task by task: before the first ANALYZE the planner would read all tasks of the tenant.
LEFT JOIN /* alone: */ LATERAL (
    SELECT l.* FROM holdfast.linked_task_records l WHERE l.tenant = $1 AND l.id = p.id OFFSET 0
) r ON true /* end */ /* distributed: holdfast.linked_task_records r ON r.tenant = $1 AND r.id = p.id */
LEFT JOIN LATERAL holdfast.task_messages(r.tenant, r.id, $14) m ON true
LEFT JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $15::boolean THEN r.id END, NULL) a ON true
LEFT JOIN LATERAL holdfast.first_task_message(
    r.tenant, CASE WHEN $17::boolean THEN r.id END) f ON true
ORDER BY r.updated_at DESC, r.id DESC;

-- name: list_within
-- The same within so many bytes ($19), but at least one task; and whether there are more.
WITH matching AS NOT MATERIALIZED (
    SELECT t.id, t.updated_at FROM holdfast.matching_tasks(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $18) t
), page AS MATERIALIZED (
    SELECT c.id, c.updated_at FROM matching c
    WHERE $11::timestamptz IS NULL OR (c.updated_at, c.id) < ($11, $12::text)
    ORDER BY c.updated_at DESC, c.id DESC LIMIT $13
), sized AS (
    SELECT p.id, row_number() OVER newer AS place, sum(s.bytes) OVER newer AS so_far
    FROM page p
    CROSS JOIN LATERAL (
        SELECT holdfast.task_page_bytes($1, p.id, $14, $15::boolean) + CASE WHEN $17 THEN coalesce((
            SELECT octet_length(m.first_body) FROM holdfast.first_task_message($1, p.id) m), 0) ELSE 0 END AS bytes
    ) s
    WINDOW newer AS (ORDER BY p.updated_at DESC, p.id DESC)
), kept AS MATERIALIZED (
    SELECT z.id FROM sized z
    WHERE z.place < $13 AND (z.place = 1 OR z.so_far <= $19::bigint)
)
SELECT CASE WHEN $16::boolean THEN (SELECT count(*) FROM matching) END AS total,
       (SELECT count(*) FROM page) > (SELECT count(*) FROM kept) AS more, r.*, m.*, a.*, f.*,
       s.dropped OR m.messages_cut AS truncated
FROM (VALUES (1)) one
LEFT JOIN kept k ON true
-- Task by task: before the first ANALYZE the planner would read all tasks of the tenant.
LEFT JOIN /* alone: */ LATERAL (
    SELECT l.* FROM holdfast.linked_task_records l WHERE l.tenant = $1 AND l.id = k.id OFFSET 0
) r ON true /* end */ /* distributed: holdfast.linked_task_records r ON r.tenant = $1 AND r.id = k.id */
LEFT JOIN LATERAL holdfast.task_artifacts_within(
    r.tenant, CASE WHEN $15 THEN r.id END, $19) s ON true
LEFT JOIN LATERAL holdfast.task_messages_within(
    r.tenant, r.id, $14, $19 - CASE WHEN s.dropped THEN 0 ELSE s.bytes END) m ON true
LEFT JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $15 AND NOT s.dropped THEN r.id END, NULL) a ON true
LEFT JOIN LATERAL holdfast.first_task_message(
    r.tenant, CASE WHEN $17::boolean THEN r.id END) f ON true
ORDER BY r.updated_at DESC, r.id DESC;

-- name: list_oldest
-- The same with the oldest first; without a limit of bytes ($19), if that is null.
WITH matching AS NOT MATERIALIZED (
    SELECT t.id, t.updated_at FROM holdfast.matching_tasks(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $18) t
), page AS MATERIALIZED (
    SELECT c.id, c.updated_at FROM matching c
    WHERE $11::timestamptz IS NULL OR (c.updated_at, c.id) > ($11, $12::text)
    ORDER BY c.updated_at, c.id LIMIT $13
), sized AS (
    SELECT p.id, row_number() OVER older AS place, sum(s.bytes) OVER older AS so_far
    FROM page p
    CROSS JOIN LATERAL (
        SELECT holdfast.task_page_bytes($1, p.id, $14, $15::boolean) + CASE WHEN $17 THEN coalesce((
            SELECT octet_length(m.first_body) FROM holdfast.first_task_message($1, p.id) m), 0) ELSE 0 END AS bytes
    ) s
    WINDOW older AS (ORDER BY p.updated_at, p.id)
), kept AS MATERIALIZED (
    SELECT z.id FROM sized z
    WHERE z.place < $13 AND (z.place = 1 OR z.so_far <= coalesce($19::bigint, 9223372036854775807))
)
SELECT CASE WHEN $16::boolean THEN (SELECT count(*) FROM matching) END AS total,
       (SELECT count(*) FROM page) > (SELECT count(*) FROM kept) AS more, r.*, m.*, a.*, f.*,
       s.dropped OR m.messages_cut AS truncated
FROM (VALUES (1)) one
LEFT JOIN kept k ON true
-- Task by task: before the first ANALYZE the planner would read all tasks of the tenant.
LEFT JOIN /* alone: */ LATERAL (
    SELECT l.* FROM holdfast.linked_task_records l WHERE l.tenant = $1 AND l.id = k.id OFFSET 0
) r ON true /* end */ /* distributed: holdfast.linked_task_records r ON r.tenant = $1 AND r.id = k.id */
LEFT JOIN LATERAL holdfast.task_artifacts_within(
    r.tenant, CASE WHEN $15 THEN r.id END, coalesce($19::bigint, 9223372036854775807)) s ON true
LEFT JOIN LATERAL holdfast.task_messages_within(
    r.tenant, r.id, $14, coalesce($19::bigint, 9223372036854775807) - CASE WHEN s.dropped THEN 0 ELSE s.bytes END) m ON true
LEFT JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $15 AND NOT s.dropped THEN r.id END, NULL) a ON true
LEFT JOIN LATERAL holdfast.first_task_message(
    r.tenant, CASE WHEN $17::boolean THEN r.id END) f ON true
ORDER BY r.updated_at, r.id;

-- name: respond
-- Take the answer to the question of a waiting task; no row if it was checked by another form.
SELECT * FROM holdfast.answer_task(
    holdfast.acting($10, $1), $2, $3, $4, $5, $6, $7, $8, $9);

-- name: form
-- What the answer to the question of a task must be.
SELECT t.ask_form FROM holdfast.tasks t
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3);

-- name: cancel
-- Stop a task, or ask its worker to.
SELECT r.*, l.*
FROM holdfast.cancel_task(holdfast.acting($5, $1), $2, $3, $4) r
LEFT JOIN LATERAL (
    SELECT t.result, t.parent_id, t.priority, t.limit_key, t.handler_version
    FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = r.id LIMIT 1
) l ON true;

-- name: pause
-- Hold a task, or ask for it.
SELECT r.*, l.*
FROM holdfast.pause_task(holdfast.acting($5, $1), $2, $3, $4) r
LEFT JOIN LATERAL (
    SELECT t.result, t.parent_id, t.priority, t.limit_key, t.handler_version
    FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = r.id LIMIT 1
) l ON true;

-- name: resume
-- Let a task go on.
SELECT r.*, l.*
FROM holdfast.resume_task(holdfast.acting($5, $1), $2, $3, $4) r
LEFT JOIN LATERAL (
    SELECT t.result, t.parent_id, t.priority, t.limit_key, t.handler_version
    FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = r.id LIMIT 1
) l ON true;
