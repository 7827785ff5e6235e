-- name: now
-- The time of a snapshot.
SELECT holdfast.now() WHERE $1 <> '';

-- name: data_keys
-- Wrapped data keys.
SELECT k.number AS key_number, k.subject, k.kek, k.wrapped, k.created_at, k.replaced,
       coalesce(k.first_number, 0) AS first_number
FROM holdfast.data_keys k
WHERE k.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY k.number;

-- name: sessions
-- Sessions that are there.
SELECT s.id, s.agent, s.started_at, s.epoch, s.seq, s.metadata, s.ended_at, s.parent, s.parent_at,
       COALESCE(s.subject, '') AS subject
FROM holdfast.sessions s
WHERE s.tenant = $1 AND s.deleted_at IS NULL AND $2::timestamptz IS NOT NULL
ORDER BY s.id;

-- name: deleted_sessions
-- The counters of deleted sessions, and whom they were about.
SELECT s.id, s.seq, COALESCE(s.subject, '') AS subject
FROM holdfast.sessions s
WHERE s.tenant = $1 AND s.deleted_at IS NOT NULL AND $2::timestamptz IS NOT NULL
ORDER BY s.id;

-- name: events
-- The logs of sessions, with the vectors that their writers gave.
SELECT s.id AS session, e.epoch, e.seq, e.id, e.agent, e.type, e.occurred_at, e.body, e.run,
       public.vector_send(v.embedding) AS vector
FROM holdfast.sessions s
JOIN holdfast.events e ON e.tenant = $1 AND e.session_key = s.key
LEFT JOIN holdfast.event_vectors v
    ON v.tenant = $1 AND v.session_key = e.session_key AND v.epoch = e.epoch AND v.seq = e.seq
        AND v.model = ''
WHERE s.tenant = $1 AND s.deleted_at IS NULL AND $2::timestamptz IS NOT NULL
ORDER BY s.id, e.epoch, e.seq;

-- name: states
-- Working states that have not expired.
SELECT s.session_id AS session, s.version, s.state::text AS "values", s.ttl_seconds, s.expires_at
FROM holdfast.states s
WHERE s.tenant = $1 AND (s.expires_at IS NULL OR s.expires_at > $2)
ORDER BY s.session_id;

-- name: saved_states
-- The states that a hybrid has saved, which have not expired.
SELECT s.session_id AS session, s.version, s.state AS "values", s.ttl_seconds, s.expires_at
FROM holdfast.state_snapshots s
WHERE s.tenant = $1 AND NOT s.cleared AND (s.expires_at IS NULL OR s.expires_at > $2)
ORDER BY s.session_id;

-- name: earlier_states
-- The kept versions of states that have not expired.
SELECT e.session_id AS session, e.version, e.state AS "values", e.written_at
FROM holdfast.states s
JOIN holdfast.earlier_states e
    ON e.tenant = $1 AND e.session_id = s.session_id AND NOT e.saved
WHERE s.tenant = $1 AND (s.expires_at IS NULL OR s.expires_at > $2)
ORDER BY e.session_id, e.version;

-- name: earlier_saved_states
-- The kept versions of states that a hybrid has saved, which have not expired.
SELECT e.session_id AS session, e.version, e.state AS "values", e.written_at
FROM holdfast.state_snapshots s
JOIN holdfast.earlier_states e
    ON e.tenant = $1 AND e.session_id = s.session_id AND e.saved
WHERE s.tenant = $1 AND NOT s.cleared AND (s.expires_at IS NULL OR s.expires_at > $2)
ORDER BY e.session_id, e.version;

-- name: facts
-- Facts that have not expired, each scope in the order of saves.
SELECT s.namespace, s.agent, f.id, f.content, f.created_at, f.confidence, f.metadata, f.topic,
       f.source, f.entities, f.key, f.fingerprint, f.expires_at, f.superseded_by, f.subject
FROM holdfast.fact_scopes s
JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key
WHERE s.tenant = $1 AND (f.expires_at IS NULL OR f.expires_at > $2)
ORDER BY s.namespace, s.agent, f.number;

-- name: documents
-- The documents of all collections.
SELECT d.collection, d.id, d.content AS blocks, d.metadata,
       public.vector_send(d.embedding) AS vector, d.subject
FROM holdfast.documents d
WHERE d.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY d.collection, d.id;

-- name: entities
-- The entities of the graph, as their bodies, with the names by which they are found.
SELECT e.body, ARRAY(
    SELECT n.name FROM holdfast.entity_names n
    WHERE n.tenant = $1 AND n.entity = e.id ORDER BY n.name) AS names
FROM holdfast.entities e
WHERE e.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY e.id;

-- name: relationships
-- The relationships of the graph, as their bodies.
SELECT r.body FROM holdfast.relationships r
WHERE r.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY r.id;

-- name: blobs
-- Blobs that have neither expired nor been deleted.
SELECT b.ref, b.size_bytes, b.content_type, b.sha256, b.created_at, b.expires_at, b.subject
FROM holdfast.blob_index b
WHERE b.tenant = $1 AND b.place = /* place */ 'postgres' AND b.ref IS NOT NULL
    AND b.taken_at IS NULL
    AND (b.expires_at IS NULL OR b.expires_at > $2)
ORDER BY b.ref;

-- name: boards
-- Boards with their cards; those of a conversation in the order of creation.
SELECT b.conversation_id, b.agent_id, b.id, b.agent_label, b.max_retries, b.parent_agent_id,
       ARRAY(SELECT ARRAY[c.id, c.title, c.status, c.position::text, c.retry_count::text, c.note,
                          c.version::text, to_char(
                              c.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.USZ')]
             FROM holdfast.cards c WHERE c.tenant = $1 AND c.board_id = b.id
             ORDER BY c.position, c.id) AS cards
FROM holdfast.boards b
WHERE b.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY b.conversation_id, b.created;

-- name: channels
-- The counters of channels.
SELECT c.name, c.newest FROM holdfast.channels c
WHERE c.tenant = $1 AND c.newest > 0 AND $2::timestamptz IS NOT NULL
ORDER BY c.name;

-- name: channel_events
-- Events of channels that have not expired.
SELECT e.channel, e.number, e.id, e.event, e.published_at, e.expires_at
FROM holdfast.channel_events e
WHERE e.tenant = $1 AND e.expires_at > $2
ORDER BY e.channel, e.number;

-- name: threads
-- Threads that have not expired.
SELECT t.id, t.ttl_seconds, t.expires_at
FROM holdfast.threads t
WHERE t.tenant = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)
ORDER BY t.id;

-- name: checkpoints
-- The checkpoints of such threads.
SELECT t.id AS thread, c.namespace, c.id, c.kind, c.body, c.metadata_kind, c.metadata, c.parent,
       coalesce(c.run, '') AS run, c.labels::text AS labels, c.versions::text AS versions
FROM holdfast.threads t
JOIN holdfast.checkpoints c ON c.tenant = $1 AND c.thread_key = t.key
WHERE t.tenant = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)
ORDER BY t.id, c.namespace, c.id;

-- name: channel_values
-- The values of their channels.
SELECT t.id AS thread, v.namespace, v.channel, v.version, v.kind, v.data
FROM holdfast.threads t
JOIN holdfast.checkpoint_values v ON v.tenant = $1 AND v.thread_key = t.key
WHERE t.tenant = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)
ORDER BY t.id, v.namespace, v.channel, v.version;

-- name: checkpoint_writes
-- What tasks wrote after them.
SELECT t.id AS thread, w.namespace, w.id, w.task, w.index, w.path, w.channel, w.kind, w.data
FROM holdfast.threads t
JOIN holdfast.checkpoint_writes w ON w.tenant = $1 AND w.thread_key = t.key
WHERE t.tenant = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)
ORDER BY t.id, w.namespace, w.id, w.task, w.index;

-- name: items
-- Items that have not expired.
SELECT n.owner, n.path AS namespace, i.key, i.version, i.created_at, i.updated_at, i.value,
       ARRAY(SELECT public.vector_send(v.one)
             FROM unnest(i.vectors) WITH ORDINALITY AS v (one, at) ORDER BY v.at) AS vectors,
       i.ttl_seconds, i.expires_at, i.subject
FROM holdfast.item_namespaces n
JOIN holdfast.items i ON i.tenant = $1 AND i.namespace = n.number
WHERE n.tenant = $1 AND (i.expires_at IS NULL OR i.expires_at > $2)
ORDER BY n.owner, n.path, i.key;

-- name: contexts
-- The contexts of tasks.
SELECT c.owner, c.id, c.created_at FROM holdfast.task_contexts c
WHERE c.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY c.owner, c.id;

-- name: tasks
-- Tasks without their timelines.
SELECT t.id, t.owner, t.context_id, t.agent, t.created_at, t.state, t.updated_at, t.max_attempts,
       t.version, t.transitions, t.metadata, t.submit_key, t.submit_digest, t.retry_of, t.note,
       coalesce(e.message_id, '') AS status, t.status_seq, t.fence, t.attempts, t.worker,
       t.lease_expires_at, t.lease_seconds, t.run_after,
       CASE WHEN isfinite(t.due_at) THEN t.due_at END AS due_at, t.cancel_requested,
       t.pause_requested, t.ask_kind, t.ask_name, t.ask_occurrence, t.ask_form, t.result,
       t.parent_id, t.awaited, t.waits_for, t.waits_topic, t.priority, t.limit_key AS key, t.copied,
       t.handler_version, t.app_version
FROM holdfast.tasks t
LEFT JOIN holdfast.task_events e
    ON e.tenant = $1 AND e.task_id = t.id AND e.seq = t.status_seq
WHERE t.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY t.id;

-- name: task_events
-- The timelines of tasks; a message has its place among those of its context.
SELECT e.task_id, e.seq, e.kind, e.at, e.actor, e.fence, coalesce(e.by_name, '') AS by_name,
       e.number, e.from_state, e.to_state, e.worker, e.attempt, e.run_after, e.note, e.request,
       e.message_id, e.written_at, p.place, e.step_kind, e.step_name, e.step_occurrence,
       e.started_at, e.chunks, CASE WHEN e.kind = 'step' THEN e.digest END AS digest,
       e.artifact_id, e.append, e.last_chunk, e.name, e.metadata, e.body, e.app_version
FROM holdfast.task_events e
LEFT JOIN (
    SELECT m.task_id, m.seq, row_number() OVER (PARTITION BY m.context_key ORDER BY m.stored) AS place
    FROM holdfast.task_events m
    WHERE m.tenant = $1 AND m.kind = 'message' AND m.stored IS NOT NULL
) p ON p.task_id = e.task_id AND p.seq = e.seq
WHERE e.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY e.task_id, e.seq;

-- name: feedback
-- Feedback on tasks, in the order in which it was given.
SELECT f.task_id, f.id, f.text, f.metadata, f.created_at, f.rating
FROM holdfast.task_feedback f
WHERE f.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY f.task_id, f.given;

-- name: inbox
-- Messages to tasks, in the order in which they were sent.
SELECT i.task_id, i.id, i.topic, i.body, i.digest, i.received
FROM holdfast.task_inbox i
WHERE i.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY i.task_id, i.number;

-- name: push_configs
-- Push configs of tasks.
SELECT p.task_id, p.id, p.url, p.token, p.authentication
FROM holdfast.push_configs p
WHERE p.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY p.task_id, p.id;

-- name: deliveries
-- Events on their way to push configs.
SELECT o.task_id, o.config_id, o.seq, o.due_at, o.attempts, o.last_error, o.dead
FROM holdfast.outbox o
WHERE o.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY o.task_id, o.config_id, o.seq;

-- name: cleanup
-- Cleanup marks, also those of deleted tasks.
SELECT c.task_id, c.kind, c.ref, c.agent, c.owner, c.context_id, c.due_at
FROM holdfast.task_cleanup c
WHERE c.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY c.task_id, c.kind, c.ref;

-- name: schedules
-- Schedules.
SELECT s.owner, s.id, s.uid, s.cron, s.timezone, s.agent, s.message, s.context_id, s.metadata,
       s.missed, s.missed_limit, s.grace_seconds, s.max_attempts, s.digest, s.version, s.paused,
       s.created_at, s.updated_at, s.decided_until AS after, s.next_at, s.last_run_at,
       s.last_task_id
FROM holdfast.schedules s
WHERE s.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY s.owner, s.id;

-- name: keys
-- API keys, by digest.
SELECT k.digest, k.id, k.owner, k.name, k.scope, k.created_at, k.revoked_at, k.ttl_seconds,
       k.expires_at, k.last_used_at
FROM holdfast.api_keys k
WHERE k.tenant = $1 AND $2::timestamptz IS NOT NULL
ORDER BY k.digest;
