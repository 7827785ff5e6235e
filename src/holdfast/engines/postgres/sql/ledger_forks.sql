-- name: fork
-- Queue a task with what another one stored, or find the one that was made before.
SELECT * FROM holdfast.fork_task(
    holdfast.acting($14, $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: held_elsewhere
-- Refs ($3) that a mark of another task than $2, which is not due, has.
SELECT DISTINCT c.ref FROM holdfast.task_cleanup c
WHERE c.tenant = $1 AND c.ref = ANY ($3::text[]) AND c.task_id <> $2 AND c.due_at IS NULL;
