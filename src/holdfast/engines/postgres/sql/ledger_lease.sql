-- name: claim
-- Take tasks that are due, with their last messages ($7), of known versions ($9).
SELECT * FROM holdfast.claim_due_tasks(
    $1, $2, $3::text[], $4, $5, $6, $7, $8, $9, $10);

-- name: heartbeat
-- Extend a lease, while it holds; written so that no index on tasks at work fits.
UPDATE holdfast.tasks t
SET lease_expires_at = holdfast.now() + make_interval(secs => $4), lease_seconds = $4
WHERE t.tenant = $1 AND t.id = $2 AND CASE WHEN t.state = 'working' THEN t.fence END = $3
RETURNING t.id, t.fence, t.worker, t.lease_expires_at, t.cancel_requested, t.pause_requested;

-- name: transition
-- End or suspend the work on a task.
SELECT * FROM holdfast.leave_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19);

-- name: complete
-- Complete tasks, each under its fence, with its result ($5) and its last message ($6 to $9) or NULL.
SELECT task_id, reached FROM holdfast.complete_tasks_with(
    $1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: release
-- Hand a task back.
SELECT r.*, l.*
FROM holdfast.release_task($1, $2, $3, $4) r
LEFT JOIN LATERAL (
    SELECT t.result, t.parent_id, t.priority, t.limit_key, t.handler_version
    FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = r.id LIMIT 1
) l ON true;

-- name: recover
-- Take back tasks whose lease has expired.
SELECT r.*, l.*
FROM holdfast.recover_tasks($1, $2) r
LEFT JOIN LATERAL (
    SELECT t.result, t.parent_id, t.priority, t.limit_key, t.handler_version
    FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = r.id LIMIT 1
) l ON true;
