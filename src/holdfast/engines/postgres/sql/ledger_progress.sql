-- name: append_message
-- Add a message to a task; the one that is stored.
SELECT * FROM holdfast.append_task_message($1, $2, $3, $4, $5, $6, $7);

-- name: append_remark
-- Add a message to a task under the key of a step; the one that is stored.
SELECT * FROM holdfast.append_task_remark($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: record_step
-- Store the result of a step; the one that is stored.
SELECT * FROM holdfast.store_task_step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: steps
-- The steps of a task, in order.
SELECT task_id, seq, at, fence, step_kind, step_name, step_occurrence, digest, chunks, body,
       started_at
FROM holdfast.task_events
WHERE tenant = $1 AND task_id = $2 AND kind = 'step'
ORDER BY seq;

-- name: append_artifact
-- Add a chunk to an artifact; whether it goes on where the last one ended.
SELECT holdfast.append_task_chunk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: restore_artifacts
-- Write the chunks of a stored step again; their events.
SELECT artifact_id, body, append, last_chunk, name, metadata, step_kind, step_name,
       step_occurrence, fence
FROM holdfast.restore_task_chunks($1, $2, $3, $4, $5, $6)
ORDER BY seq;

-- name: artifacts
-- The chunks of the artifacts of a task, or of one ($4).
SELECT t.id, a.*
FROM holdfast.tasks t
CROSS JOIN LATERAL holdfast.task_artifacts(t.tenant, t.id, $4) a
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3);
