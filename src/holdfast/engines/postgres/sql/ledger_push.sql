-- name: upsert
-- Store a push config of a task.
SELECT holdfast.upsert_push_config($1, $2, $3, $4, $5, $6, $7);

-- name: upsert_within
-- Store a push config of a task, unless it has so many others ($8); whether it was stored.
SELECT holdfast.put_push_config($1, $2, $3, $4, $5, $6, $7, $8);

-- name: configs
-- The push configs of a task, or one ($4), by id.
SELECT p.id, p.url, p.token, p.authentication
FROM holdfast.tasks t
JOIN holdfast.push_configs p ON p.tenant = $1 AND p.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
    AND ($4::text IS NULL OR p.id = $4)
ORDER BY p.id;

-- name: delete
-- Remove a push config with all that is on its way to it.
SELECT holdfast.delete_push_config($1, $2, $3, $4);

-- name: claim
-- Take entries that are due.
SELECT * FROM holdfast.claim_outbox($1, $2, $3);

-- name: claim_fairly
-- Take entries that are due, of each owner at most so many ($4), with those on their way ($5, $6).
SELECT * FROM holdfast.claim_outbox_fairly($1, $2, $3, $4, $5::text[], $6::bigint[]);

-- name: delivered
-- Remove an entry that has arrived.
SELECT holdfast.mark_delivered($1, $2, $3, $4);

-- name: failed
-- Let an entry wait, or give it up.
SELECT holdfast.mark_failed($1, $2, $3, $4, $5, $6, $7, $8);

-- name: outbox
-- What is on its way for a task, or was given up, in order.
SELECT e.*
FROM holdfast.tasks t
JOIN holdfast.outbox_entries e ON e.tenant = $1 AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
ORDER BY e.seq, e.config_id;

-- name: purge
-- Remove entries that were given up 30 days ago, of all tenants, up to so many ($1).
WITH old AS (
    SELECT o.tenant, o.task_id, o.config_id, o.seq FROM holdfast.outbox o
    WHERE o.dead AND o.due_at < holdfast.now() - interval '30 days'
    LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.outbox o USING old
    WHERE o.tenant = old.tenant AND o.task_id = old.task_id AND o.config_id = old.config_id
        AND o.seq = old.seq
    RETURNING 1
)
SELECT count(*) FROM gone;
