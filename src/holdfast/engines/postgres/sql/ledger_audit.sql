-- name: events
-- The events of a task above a cursor.
SELECT e.*
FROM holdfast.tasks t
JOIN holdfast.task_events e ON e.tenant = $1 AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3) AND e.seq > $4
ORDER BY e.seq LIMIT $5;

-- name: events_within
-- The same, as many as fit so many bytes ($6), but always the first one.
SELECT f.*
FROM holdfast.tasks t
CROSS JOIN LATERAL (
    SELECT l.*, sum(coalesce(octet_length(l.body), 0) + coalesce(octet_length(l.metadata), 0))
               OVER older AS so_far, row_number() OVER older AS place
    FROM (
        SELECT * FROM holdfast.task_events e
        WHERE e.tenant = $1 AND e.task_id = t.id AND e.seq > $4
        ORDER BY e.seq LIMIT $5
    ) l
    WINDOW older AS (ORDER BY l.seq)
) f
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
    AND (f.so_far <= $6::bigint OR f.place = 1)
ORDER BY f.seq;

-- name: follow
-- Where a task is, with its next events above a cursor, or with none; no row without the task. As
-- many events as fit so many bytes ($6), but always one.
SELECT w.out_state, w.out_version, e.*
FROM holdfast.watch_task($1, $2, $3) w
LEFT JOIN LATERAL (
    SELECT l.*, sum(coalesce(octet_length(l.body), 0) + coalesce(octet_length(l.metadata), 0))
               OVER older AS so_far, row_number() OVER older AS place
    FROM (
        SELECT * FROM holdfast.task_events
        WHERE tenant = $1 AND task_id = $2 AND seq > $4
        ORDER BY seq LIMIT $5
    ) l
    WINDOW older AS (ORDER BY l.seq)
) e ON e.so_far <= $6::bigint OR e.place = 1
ORDER BY e.seq;

-- name: replay
-- A task as it was after an event ($4), with its last messages ($5) and, if wanted ($6), its artifacts.
-- A worker whose task is to be canceled takes it nowhere else, and a request to pause survives one
-- change of state, that to a question: so older requests are not read. Only somebody else may go on.
SELECT t.id, t.context_id, t.owner, t.agent, t.metadata, t.max_attempts, t.submit_key, t.retry_of,
       t.priority, t.limit_key, t.handler_version, t.parent_id,
       CASE WHEN e.ended THEN t.result END AS result,
       t.created_at,
       m.at AS updated_at, m.to_state AS state, m.note, s.seq AS version, m.fence,
       CASE WHEN p.stored THEN 0 ELSE m.attempt END AS attempts,
       CASE WHEN m.to_state = 'working' THEN m.worker ELSE '' END AS worker,
       NULL::timestamptz AS lease_expires_at, m.run_after,
       NOT e.ended AND holdfast.task_request_between(
           t.tenant, t.id, CASE WHEN t.adopted THEN 0 ELSE m.seq END, s.seq, '{cancel}'
       ) IS NOT NULL AS cancel_requested,
       NOT e.ended AND m.to_state <> 'paused' AND coalesce(holdfast.task_request_between(
           t.tenant, t.id, b.seq, s.seq, '{pause,resume}') = 'pause', false) AS pause_requested,
       said.message_id AS status_id, said.written_at AS status_at, said.seq AS status_seq,
       said.body AS status_body, h.*, a.*
FROM holdfast.tasks t
CROSS JOIN LATERAL (SELECT least($4::bigint, t.version) AS seq) s
CROSS JOIN LATERAL holdfast.task_change_at(t.tenant, t.id, t.version, t.state, s.seq) m
CROSS JOIN LATERAL (
    SELECT m.to_state IN ('completed', 'failed', 'canceled', 'rejected') AS ended) e
-- What was asked of the task in the state before may still hold in a question.
CROSS JOIN LATERAL (
    SELECT CASE WHEN m.to_state IN ('input-required', 'auth-required')
                THEN (holdfast.task_change_at(
                    t.tenant, t.id, t.version, t.state, m.seq - 1)).seq ELSE m.seq END AS seq) b
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT FROM holdfast.task_events k
        WHERE k.tenant = $1 AND k.task_id = t.id AND k.kind = 'step' AND k.seq > m.seq
            AND k.seq <= s.seq AND k.step_kind <> 'try') AS stored) p
LEFT JOIN LATERAL (
    SELECT k.message_id, k.written_at, k.seq, k.body FROM holdfast.task_events k
    WHERE m.message_id <> '' AND k.tenant = $1 AND k.kind = 'message'
        AND k.task_id = t.id AND k.message_id = m.message_id
    LIMIT 1
) said ON true
CROSS JOIN LATERAL holdfast.task_messages_at(t.tenant, t.id, $5, s.seq) h
CROSS JOIN LATERAL holdfast.task_artifacts_at(
    t.tenant, CASE WHEN $6::boolean THEN t.id END, s.seq) a
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3) AND $4 > 0;

-- name: append_feedback
-- Keep feedback on a task; the one that is kept.
SELECT * FROM holdfast.append_task_feedback($1, $2, $3, $4, $5, $6, $7, $8);

-- name: list_feedback
-- The feedback on a task, in order.
SELECT f.*
FROM holdfast.tasks t
JOIN holdfast.task_feedback f ON f.tenant = $1 AND f.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
ORDER BY f.given;
