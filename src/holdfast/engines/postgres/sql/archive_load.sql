-- name: data_keys
-- Wrapped data keys.
INSERT INTO holdfast.data_keys (
    tenant, number, subject, kek, wrapped, created_at, replaced, first_number)
SELECT $1, r.number, r.subject, r.kek, r.wrapped, r.created_at, r.replaced, NULLIF(r.earliest, 0)
FROM unnest(
    $2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[], $7::boolean[],
    $8::bigint[]) AS r (number, subject, kek, wrapped, created_at, replaced, earliest)
ON CONFLICT DO NOTHING;

-- name: sessions
-- Sessions, numbered here.
INSERT INTO holdfast.sessions (
    tenant, id, agent, started_at, epoch, seq, metadata, ended_at, parent, parent_at, subject)
SELECT $1, r.id, r.agent, r.started_at, r.epoch, r.seq, r.metadata, r.ended_at, r.parent, r.parent_at,
       NULLIF(r.subject, '')
FROM unnest(
    $2::text[], $3::text[], $4::timestamptz[], $5::int[], $6::bigint[], $7::text[],
    $8::timestamptz[], $9::text[], $10::bigint[], $11::text[])
    AS r (id, agent, started_at, epoch, seq, metadata, ended_at, parent, parent_at, subject)
ON CONFLICT DO NOTHING;

-- name: deleted_sessions
-- The counters of deleted sessions, and whom they were about.
INSERT INTO holdfast.sessions (tenant, id, agent, started_at, seq, deleted_at, subject)
SELECT $1, r.id, '', holdfast.now(), r.seq, holdfast.now(), NULLIF(r.subject, '')
FROM unnest($2::text[], $3::bigint[], $4::text[]) AS r (id, seq, subject)
ON CONFLICT DO NOTHING;

-- name: events
-- Events at their positions; their words are to be indexed.
SELECT holdfast.load_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: event_vectors
-- The vectors that the writers of events gave.
SELECT holdfast.keep_event_vectors($1, $2, $3, $4, $5);

-- name: states
-- Working states; later versions are greater.
WITH loaded AS (
    INSERT INTO holdfast.states
        (tenant, session_id, version, state, ttl_seconds, expires_at, written_at)
    SELECT $1, r.id, r.version, r.state::jsonb, r.ttl, r.expires_at, holdfast.now()
    FROM unnest($2::text[], $3::bigint[], $4::text[], $5::double precision[], $6::timestamptz[])
        AS r (id, version, state, ttl, expires_at)
    ON CONFLICT DO NOTHING
)
SELECT holdfast.advance_versions('holdfast.state_versions', max(v.version))
FROM unnest($3::bigint[]) AS v (version);

-- name: saved_states
-- The states of a hybrid: it restores them into Redis when they are read.
INSERT INTO holdfast.state_snapshots
    (tenant, session_id, version, state, ttl_seconds, expires_at)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::bigint[], $4::text[], $5::double precision[], $6::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: earlier_states
-- Versions of states.
INSERT INTO holdfast.earlier_states (tenant, saved, session_id, version, state, written_at)
SELECT $1, false, r.* FROM unnest($2::text[], $3::bigint[], $4::text[], $5::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: earlier_saved_states
-- Versions of the states of a hybrid.
INSERT INTO holdfast.earlier_states (tenant, saved, session_id, version, state, written_at)
SELECT $1, true, r.* FROM unnest($2::text[], $3::bigint[], $4::text[], $5::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: facts
-- Facts with their words in one language.
SELECT holdfast.load_fact_about(
    $1, r.namespace, r.agent, r.id, r.content, r.created_at, r.confidence, r.metadata, r.topic,
    r.source, ARRAY(SELECT json_array_elements_text(r.entities::json)), r.key, r.fingerprint,
    r.expires_at, r.superseded_by, $17, r.length,
    ARRAY(SELECT json_array_elements_text(r.lexemes::json)),
    ARRAY(SELECT json_array_elements_text(r.times::json)::int), r.subject)
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::double precision[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::timestamptz[],
    $15::text[], $16::text[], $18::int[], $19::text[], $20::text[])
    WITH ORDINALITY AS r (
        namespace, agent, id, content, created_at, confidence, metadata, topic, source, entities,
        key, fingerprint, expires_at, superseded_by, subject, length, lexemes, times, at)
ORDER BY r.at;

-- name: blob
-- A blob whose bytes are there, with its own times.
INSERT INTO holdfast.blob_index (
    tenant, place, object_key, ref, size_bytes, content_type, sha256, created_at, expires_at,
    subject)
VALUES ($1, 'postgres', $2, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING;

-- name: date_blob
-- The times of a blob whose bytes are in an object store.
UPDATE holdfast.blob_index b SET created_at = $3, expires_at = $4
WHERE b.tenant = $1 AND b.place = 'objects' AND b.ref = $2;

-- name: blob_exists
-- Whether a ref is there.
SELECT EXISTS (
    SELECT FROM holdfast.blob_index b
    WHERE b.tenant = $1 AND b.place = 'postgres' AND b.object_key = $2);

-- name: boards
-- Boards, in the order of creation.
INSERT INTO holdfast.boards
    (tenant, conversation_id, agent_id, id, agent_label, max_retries, parent_agent_id)
SELECT $1, r.conversation_id, r.agent_id, r.id, r.label, r.retries, r.parent
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
    WITH ORDINALITY AS r (conversation_id, agent_id, id, label, retries, parent, at)
ORDER BY r.at
ON CONFLICT DO NOTHING;

-- name: cards
-- The cards of boards.
INSERT INTO holdfast.cards (tenant, board_id, id, title, status, position, retry_count, note,
    version, updated_at)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],
    $9::bigint[], $10::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: channels
-- The counters of channels.
INSERT INTO holdfast.channels (tenant, name, newest)
SELECT $1, r.* FROM unnest($2::text[], $3::bigint[]) AS r
ON CONFLICT (tenant, name) DO UPDATE SET newest = greatest(channels.newest, excluded.newest);

-- name: channel_events
-- Events of channels.
INSERT INTO holdfast.channel_events
    (tenant, channel, number, id, event, published_at, expires_at)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: threads
-- Threads.
INSERT INTO holdfast.threads (tenant, id, ttl_seconds, expires_at)
SELECT $1, r.* FROM unnest($2::text[], $3::double precision[], $4::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: checkpoints
-- Checkpoints of threads that are there.
INSERT INTO holdfast.checkpoints (
    tenant, thread_key, namespace, id, kind, body, metadata_kind, metadata, parent, run, labels,
    versions)
SELECT $1, t.key, r.namespace, r.id, r.kind, r.body, r.metadata_kind, r.metadata, r.parent,
       nullif(r.run, ''), r.labels::jsonb, r.versions::jsonb
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::bytea[],
    $9::text[], $10::text[], $11::text[], $12::text[])
    AS r (thread, namespace, id, kind, body, metadata_kind, metadata, parent, run, labels, versions)
JOIN holdfast.threads t ON t.tenant = $1 AND t.id = r.thread
ON CONFLICT DO NOTHING;

-- name: channel_values
-- Values of channels of threads that are there.
INSERT INTO holdfast.checkpoint_values
    (tenant, thread_key, namespace, channel, version, kind, data)
SELECT $1, t.key, r.namespace, r.channel, r.version, r.kind, r.data
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[])
    AS r (thread, namespace, channel, version, kind, data)
JOIN holdfast.threads t ON t.tenant = $1 AND t.id = r.thread
ON CONFLICT DO NOTHING;

-- name: checkpoint_writes
-- Writes of tasks to threads that are there.
INSERT INTO holdfast.checkpoint_writes
    (tenant, thread_key, namespace, id, task, index, path, channel, kind, data)
SELECT $1, t.key, r.namespace, r.id, r.task, r.index, r.path, r.channel, r.kind, r.data
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[], $8::text[], $9::text[],
    $10::bytea[])
    AS r (thread, namespace, id, task, index, path, channel, kind, data)
JOIN holdfast.threads t ON t.tenant = $1 AND t.id = r.thread
ON CONFLICT DO NOTHING;

-- name: items
-- Items, in namespaces that are made on first use; later versions are greater.
SELECT holdfast.load_items_about($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: contexts
-- Contexts of tasks.
INSERT INTO holdfast.task_contexts (tenant, owner, id, created_at)
SELECT $1, r.* FROM unnest($2::text[], $3::text[], $4::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: tasks
-- Tasks of contexts that are there; a task at work has a lane of its own.
INSERT INTO holdfast.tasks (
    tenant, id, owner, context_id, agent, created_at, state, updated_at, max_attempts, version,
    transitions, metadata, submit_key, submit_digest, retry_of, note, status_seq, fence, attempts,
    worker, lease_expires_at, lease_seconds, run_after, due_at, cancel_requested, pause_requested,
    ask_kind, ask_name, ask_occurrence, ask_form, result, parent_id, awaited, waits_for,
    waits_topic, priority, limit_key, copied, handler_version, app_version, context_key, lane,
    adopted)
SELECT
    $1, r.id, r.owner, r.context_id, r.agent, r.created_at, r.state, r.updated_at, r.max_attempts,
    r.version, r.transitions, r.metadata, r.submit_key, r.submit_digest, r.retry_of, r.note,
    r.status_seq, r.fence, r.attempts, r.worker, r.lease_expires_at, r.lease_seconds, r.run_after,
    coalesce(r.due_at, 'infinity'), r.cancel_requested, r.pause_requested, r.ask_kind, r.ask_name,
    r.ask_occurrence, r.ask_form, r.result, r.parent_id, r.awaited, r.waits_for, r.waits_topic,
    r.priority, r.limit_key, r.copied, r.handler_version, r.app_version, c.key,
    CASE WHEN r.state = 'working' OR r.max_attempts = 0 THEN r.id ELSE '' END, r.max_attempts = 0
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[],
    $8::timestamptz[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[],
    $14::text[], $15::text[], $16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::text[],
    $21::timestamptz[], $22::double precision[], $23::timestamptz[], $24::timestamptz[],
    $25::boolean[], $26::boolean[], $27::text[], $28::text[], $29::bigint[], $30::text[],
    $31::text[], $32::text[], $33::boolean[], $34::bigint[], $35::text[], $36::smallint[],
    $37::text[], $38::boolean[], $39::text[], $40::text[]) AS r (
        id, owner, context_id, agent, created_at, state, updated_at, max_attempts, version,
        transitions, metadata, submit_key, submit_digest, retry_of, note, status_seq, fence,
        attempts, worker, lease_expires_at, lease_seconds, run_after, due_at, cancel_requested,
        pause_requested, ask_kind, ask_name, ask_occurrence, ask_form, result, parent_id, awaited,
        waits_for, waits_topic, priority, limit_key, copied, handler_version, app_version)
JOIN holdfast.task_contexts c ON c.tenant = $1 AND c.owner = r.owner AND c.id = r.context_id
ON CONFLICT DO NOTHING;

-- name: task_events
-- Entries of the timelines of tasks that are there. A place becomes a number below all that are
-- given out here, so that what is said later comes after it.
INSERT INTO holdfast.task_events (
    tenant, task_id, seq, kind, at, actor, fence, by_name, number, from_state, to_state, worker,
    attempt, run_after, note, request, message_id, written_at, stored, step_kind, step_name,
    step_occurrence, started_at, chunks, digest, artifact_id, append, last_chunk, name, metadata,
    body, app_version, context_key, step_key)
SELECT
    $1, r.task_id, r.seq, r.kind, r.at, r.actor, r.fence, nullif(r.by_name, ''), r.number,
    r.from_state, r.to_state, r.worker, r.attempt, r.run_after, r.note, r.request, r.message_id,
    r.written_at, r.place - 1099511627776, r.step_kind, r.step_name, r.step_occurrence,
    r.started_at, r.chunks, r.digest, r.artifact_id, r.append, r.last_chunk, r.name, r.metadata,
    r.body, r.app_version, CASE WHEN r.place IS NOT NULL THEN t.context_key END,
    holdfast.task_step_key(r.task_id, r.step_kind, r.step_name, r.step_occurrence)
FROM unnest(
    $2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::text[], $7::bigint[], $8::text[],
    $9::bigint[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::timestamptz[],
    $15::text[], $16::text[], $17::text[], $18::timestamptz[], $19::bigint[], $20::text[],
    $21::text[], $22::bigint[], $23::timestamptz[], $24::bigint[], $25::text[], $26::text[],
    $27::boolean[], $28::boolean[], $29::text[], $30::text[], $31::text[], $32::text[]) AS r (
        task_id, seq, kind, at, actor, fence, by_name, number, from_state, to_state, worker,
        attempt, run_after, note, request, message_id, written_at, place, step_kind, step_name,
        step_occurrence, started_at, chunks, digest, artifact_id, append, last_chunk, name,
        metadata, body, app_version)
JOIN holdfast.tasks t ON t.tenant = $1 AND t.id = r.task_id
ON CONFLICT DO NOTHING;

-- name: task_artifacts
-- Where the artifacts of tasks begin, from their chunks.
WITH chunk AS (
    SELECT e.* FROM holdfast.task_events e
    WHERE e.tenant = $1 AND e.task_id = ANY ($2::text[]) AND e.kind = 'artifact'
), marked AS (
    UPDATE holdfast.tasks t SET has_step_chunks = true
    WHERE t.tenant = $1 AND t.id IN (SELECT c.task_id FROM chunk c WHERE c.step_key IS NOT NULL)
        AND NOT t.has_step_chunks
)
INSERT INTO holdfast.task_artifacts (tenant, task_id, id, begun, anew, fence, complete)
SELECT $1, c.task_id, c.artifact_id, min(c.seq),
       coalesce(max(c.seq) FILTER (WHERE NOT c.append), min(c.seq)),
       (array_agg(c.fence ORDER BY c.seq DESC))[1],
       (array_agg(c.last_chunk ORDER BY c.seq DESC))[1]
FROM chunk c
GROUP BY c.task_id, c.artifact_id
ON CONFLICT (tenant, task_id, id) DO UPDATE SET
    begun = excluded.begun, anew = excluded.anew, fence = excluded.fence,
    complete = excluded.complete;

-- name: feedback
-- Feedback on tasks, in the order in which it was given.
INSERT INTO holdfast.task_feedback
    (tenant, task_id, id, text, metadata, created_at, rating, digest)
SELECT $1, r.task_id, r.id, r.text, r.metadata, r.created_at, r.rating, r.digest
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $8::text[])
    WITH ORDINALITY AS r (task_id, id, text, metadata, created_at, rating, digest, at)
ORDER BY r.at
ON CONFLICT DO NOTHING;

-- name: inbox
-- Messages to tasks, in the order in which they were sent.
WITH marked AS (
    UPDATE holdfast.tasks t SET has_inbox = true
    WHERE t.tenant = $1 AND t.id = ANY ($2::text[]) AND NOT t.has_inbox
)
INSERT INTO holdfast.task_inbox (tenant, task_id, id, topic, body, digest, received, sent_at)
SELECT $1, r.task_id, r.id, r.topic, r.body, r.digest, r.received, holdfast.now()
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[])
    WITH ORDINALITY AS r (task_id, id, topic, body, digest, received, at)
ORDER BY r.at
ON CONFLICT DO NOTHING;

-- name: push_configs
-- Push configs of tasks.
WITH marked AS (
    UPDATE holdfast.tasks t SET has_push = true
    WHERE t.tenant = $1 AND t.id = ANY ($2::text[]) AND NOT t.has_push
)
INSERT INTO holdfast.push_configs (tenant, task_id, id, url, token, authentication)
SELECT $1, r.* FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) AS r
ON CONFLICT DO NOTHING;

-- name: deliveries
-- Events on their way to push configs.
INSERT INTO holdfast.outbox (tenant, task_id, config_id, seq, due_at, attempts, last_error, dead)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::bigint[], $7::text[],
    $8::boolean[]) AS r
ON CONFLICT DO NOTHING;

-- name: advance_outbox
-- Which entry of each push config is next.
SELECT holdfast.advance_outbox($1, r.task_id, r.config_id)
FROM (SELECT DISTINCT * FROM unnest($2::text[], $3::text[])) AS r (task_id, config_id);

-- name: cleanup
-- Cleanup marks, also those of deleted tasks.
WITH marked AS (
    UPDATE holdfast.tasks t SET has_cleanup = true
    WHERE t.tenant = $1 AND t.id = ANY ($2::text[]) AND NOT t.has_cleanup
)
INSERT INTO holdfast.task_cleanup (tenant, task_id, kind, ref, agent, owner, context_id, due_at)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: schedules
-- Schedules.
INSERT INTO holdfast.schedules (
    tenant, owner, id, uid, cron, timezone, agent, message, context_id, metadata, missed,
    missed_limit, grace_seconds, max_attempts, digest, version, paused, created_at, updated_at,
    decided_until, next_at, last_run_at, last_task_id)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::bigint[], $13::double precision[], $14::bigint[], $15::text[],
    $16::bigint[], $17::boolean[], $18::timestamptz[], $19::timestamptz[], $20::timestamptz[],
    $21::timestamptz[], $22::timestamptz[], $23::text[]) AS r
ON CONFLICT DO NOTHING;

-- name: keys
-- API keys, by digest.
INSERT INTO holdfast.api_keys (
    tenant, digest, id, owner, name, scope, created_at, revoked_at, ttl_seconds, expires_at,
    last_used_at)
SELECT $1, r.* FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
    $8::timestamptz[], $9::double precision[], $10::timestamptz[], $11::timestamptz[]) AS r
ON CONFLICT DO NOTHING;

-- name: import_state
-- The loaded segments of an import, and whether it was finished; no row if there is no such import.
SELECT i.segments, i.finished_at IS NOT NULL AS finished FROM holdfast.imports i
WHERE i.tenant = $1 AND i.id = $2;

-- name: begin_import
-- Start an import; the same again changes nothing.
INSERT INTO holdfast.imports (tenant, id, started_at) VALUES ($1, $2, holdfast.now())
ON CONFLICT DO NOTHING;

-- name: segment_loaded
-- A segment is loaded.
UPDATE holdfast.imports i SET segments = i.segments || $3::text
WHERE i.tenant = $1 AND i.id = $2 AND NOT $3 = ANY (i.segments);

-- name: finish_import
-- All of it is loaded.
UPDATE holdfast.imports i SET finished_at = holdfast.now()
WHERE i.tenant = $1 AND i.id = $2 AND i.finished_at IS NULL;
