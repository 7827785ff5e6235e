-- name: submit
-- Queue a task, or find the one that was submitted before.
SELECT * FROM holdfast.queue_task(
    holdfast.acting($24, $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    $18::text[], $19::text[], $20::text[], $21::text[], $22, $23, NULL);

-- name: submit_many
-- Queue tasks, all or none; the tasks in the order given.
SELECT * FROM holdfast.queue_tasks(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: submit_new
-- Queue a task that is due at once, in a context of its own, and nothing to look up; when. No row if it is
-- there, after an answer was lost. A plain statement: a function would cost more than what it writes.
WITH context AS (
    INSERT INTO holdfast.task_contexts (tenant, owner, id, created_at)
    SELECT $1, $3, $4, holdfast.now()
    FROM holdfast.task_edges e
    WHERE e.from_state IS NULL AND e.to_state = 'submitted' AND e.actor = 'client'
    ON CONFLICT DO NOTHING RETURNING key, created_at
), task AS (
    INSERT INTO holdfast.tasks (
        tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
        submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
        transitions, due_at, priority, limit_key)
    SELECT $1, $2, $3, $4, c.key, $5, $6, $7, '', '', '', c.created_at, 'submitted', c.created_at, 2,
           1, c.created_at, $8, $9
    FROM context c
    RETURNING created_at
), logged AS (
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, number, to_state, worker, attempt, note,
        message_id, written_at, context_key, stored, digest, body)
    SELECT $1, $2, e.seq, e.kind, c.created_at, 'client', 0, e.number, e.to_state, e.worker, e.attempt,
           e.note, e.message_id, e.written_at, e.context_key, e.stored, e.digest, e.body
    FROM context c CROSS JOIN LATERAL (VALUES
        (1, 'transition', 1, 'submitted', '', 0, '""', '', NULL::timestamptz, NULL::bigint, NULL::bigint,
         NULL, NULL),
        (2, 'message', NULL, NULL, NULL, NULL, NULL, $10, $11, c.key,
         nextval('holdfast.task_messages_stored'), $13, $12)
    ) AS e (seq, kind, number, to_state, worker, attempt, note,
            message_id, written_at, context_key, stored, digest, body)
)
SELECT t.created_at FROM task t;

-- name: submit_many_new
-- The same for several, all or none: when.
WITH given AS MATERIALIZED (
    SELECT g.*, nextval('holdfast.task_contexts_key_seq') AS key, n.now
    FROM (
        SELECT holdfast.now() AS now FROM holdfast.task_edges e
        WHERE e.from_state IS NULL AND e.to_state = 'submitted' AND e.actor = 'client' OFFSET 0
    ) n, unnest(
        $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::text[],
        $10::text[], $11::timestamptz[], $12::text[], $13::text[]
    ) AS g (id, context_id, agent, metadata, max_attempts, priority, limit_key,
            message_id, message_at, body, digest)
), contexts AS (
    INSERT INTO holdfast.task_contexts (tenant, owner, id, key, created_at)
    OVERRIDING SYSTEM VALUE
    SELECT $1, $2, g.context_id, g.key, g.now FROM given g
    ON CONFLICT DO NOTHING RETURNING key
), made AS (
    SELECT g.* FROM given g WHERE (SELECT count(*) FROM contexts) = cardinality($3)
), tasks AS (
    INSERT INTO holdfast.tasks (
        tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
        submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
        transitions, due_at, priority, limit_key)
    SELECT $1, g.id, $2, g.context_id, g.key, g.agent, g.metadata, g.max_attempts,
           '', '', '', g.now, 'submitted', g.now, 2, 1, g.now, g.priority, g.limit_key
    FROM made g
), logged AS (
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, number, to_state, worker, attempt, note,
        message_id, written_at, context_key, stored, digest, body)
    SELECT $1, g.id, e.seq, e.kind, g.now, 'client', 0, e.number, e.to_state, e.worker, e.attempt,
           e.note, e.message_id, e.written_at, e.context_key, e.stored, e.digest, e.body
    FROM made g CROSS JOIN LATERAL (VALUES
        (1, 'transition', 1, 'submitted', '', 0, '""', '', NULL::timestamptz, NULL::bigint, NULL::bigint,
         NULL, NULL),
        (2, 'message', NULL, NULL, NULL, NULL, NULL, g.message_id, g.message_at, g.key,
         nextval('holdfast.task_messages_stored'), g.digest, g.body)
    ) AS e (seq, kind, number, to_state, worker, attempt, note,
            message_id, written_at, context_key, stored, digest, body)
)
SELECT g.now FROM made g LIMIT 1;

-- name: first
-- A task with its first message, and the time.
SELECT r.*, m.message_id, m.written_at, m.body, m.seq, holdfast.now() AS now
FROM holdfast.linked_task_records r
LEFT JOIN holdfast.task_events m
    ON m.tenant = $1 AND m.task_id = r.id AND m.seq = 2 AND m.kind = 'message'
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);
