-- name: add
-- Store a mark of a task, while its lease holds.
SELECT holdfast.add_task_cleanup($1, $2, $3, $4, $5, $6);

-- name: claim
-- Take due marks, the longest due first; each is due again after so many seconds ($3).
WITH due AS MATERIALIZED (
    SELECT c.task_id, c.kind, c.ref, c.due_at FROM holdfast.task_cleanup c
    WHERE c.tenant = $1 AND c.due_at <= (SELECT holdfast.now())
    ORDER BY c.due_at, c.task_id, c.kind, c.ref LIMIT $2
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE holdfast.task_cleanup c
    SET due_at = holdfast.seconds_after(holdfast.now(), $3)
    FROM due d
    WHERE c.tenant = $1 AND c.task_id = d.task_id AND c.kind = d.kind AND c.ref = d.ref
    RETURNING c.task_id, c.kind, c.ref, c.agent, d.due_at
)
SELECT task_id, kind, ref, agent FROM taken ORDER BY due_at, task_id, kind, ref;

-- name: of_task
-- The due marks of a task.
SELECT task_id, kind, ref, agent FROM holdfast.task_cleanup
WHERE tenant = $1 AND task_id = $2 AND due_at IS NOT NULL
ORDER BY due_at, kind, ref;

-- name: of_context
-- The due marks of the tasks that a context has or had.
SELECT task_id, kind, ref, agent FROM holdfast.task_cleanup
WHERE tenant = $1 AND due_at IS NOT NULL AND owner = $2 AND context_id = $3
ORDER BY due_at, task_id, kind, ref;

-- name: keep_files
-- Mark blobs as files of a task's artifacts; false if the task is gone.
SELECT holdfast.keep_task_files($1, $2, $3);

-- name: delete
-- Delete marks of a task; how many there were.
WITH locked AS MATERIALIZED (
    SELECT c.kind, c.ref FROM holdfast.task_cleanup c
    JOIN unnest($3::text[], $4::text[]) AS g (kind, ref) ON g.kind = c.kind AND g.ref = c.ref
    WHERE c.tenant = $1 AND c.task_id = $2
    ORDER BY c.kind, c.ref FOR UPDATE OF c
), gone AS (
    DELETE FROM holdfast.task_cleanup c USING locked l
    WHERE c.tenant = $1 AND c.task_id = $2 AND c.kind = l.kind AND c.ref = l.ref
    RETURNING 1
)
SELECT count(*) FROM gone;
