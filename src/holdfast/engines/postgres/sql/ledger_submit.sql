-- name: submit
-- Queue a task, or find the one that was submitted before.
SELECT * FROM holdfast.queue_task(
    holdfast.acting($24, $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    $18::text[], $19::text[], $20::text[], $21::text[], $22, $23, NULL);

-- name: submit_many
-- Queue tasks, all or none; the tasks in the order given.
SELECT * FROM holdfast.queue_tasks(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: first
-- A task with its first message, and the time.
SELECT r.*, m.message_id, m.written_at, m.body, m.seq, holdfast.now() AS now
FROM holdfast.linked_task_records r
LEFT JOIN holdfast.task_events m
    ON m.tenant = $1 AND m.task_id = r.id AND m.seq = 2 AND m.kind = 'message'
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);
