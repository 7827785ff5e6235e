-- name: submit
-- Queue a task, or find the one that was submitted before.
SELECT r.*, l.result, l.parent_id
FROM holdfast.submit_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    $18::text[], $19::text[], $20::text[], $21::text[]) r
LEFT JOIN LATERAL (
    SELECT t.result, t.parent_id FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = r.id LIMIT 1
) l ON true;

-- name: first
-- A task with its first message, and the time.
SELECT r.*, m.message_id, m.written_at, m.body, m.seq, holdfast.now() AS now
FROM holdfast.linked_task_records r
LEFT JOIN holdfast.task_events m
    ON m.tenant = r.tenant AND m.task_id = r.id AND m.seq = 2 AND m.kind = 'message'
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);
