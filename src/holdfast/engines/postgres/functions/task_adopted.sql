-- version: 3
-- Tasks that somebody else runs.

-- Stores what was reported of a locked task, in order; its version afterwards. The reports are
-- columns of equal length: status, message or chunk.
CREATE OR REPLACE FUNCTION holdfast.report_of_task(
    task holdfast.tasks,
    in_kinds text[], in_states text[], in_notes text[], in_ats timestamptz[],
    in_metadatas text[], in_message_ids text[], in_message_ats timestamptz[], in_bodies text[],
    in_digests text[], in_artifact_ids text[], in_appends boolean[], in_lasts boolean[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    moment timestamptz;
    reached text := task.state;
    said bigint;
    announced bigint[] := '{}';
BEGIN
    FOR i IN 1 .. cardinality(in_kinds) LOOP
        IF reached IN ('completed', 'failed', 'canceled', 'rejected') THEN
            PERFORM holdfast.fail_task_edge(task.id, reached, coalesce(in_states[i], reached));
        END IF;
        reached := coalesce(in_states[i], reached);
    END LOOP;
    FOR i IN 1 .. cardinality(in_kinds) LOOP
        said := NULL;
        IF in_message_ids[i] IS NOT NULL THEN
            said := holdfast.say_in_task(
                task.tenant, task.id, task.version + 1, task.context_key, task.fence, 'worker',
                v_now, in_message_ids[i], in_message_ats[i], in_bodies[i], in_digests[i]);
            IF said > task.version THEN
                task.version := said;
                announced := announced || said;
            END IF;
        END IF;
        IF in_kinds[i] = 'chunk' THEN
            task.version := task.version + 1;
            PERFORM holdfast.write_task_chunk(
                task.tenant, task.id, task.version, task.fence, v_now, in_artifact_ids[i],
                in_bodies[i], in_appends[i], in_lasts[i], in_notes[i], in_metadatas[i],
                NULL, NULL, NULL, false);
            announced := announced || task.version;
        ELSIF in_kinds[i] = 'status' THEN
            moment := coalesce(in_ats[i], v_now);
            task.version := task.version + 1;
            task.transitions := task.transitions + 1;
            INSERT INTO holdfast.task_events (
                tenant, task_id, seq, kind, at, actor, fence, number, from_state, to_state,
                worker, attempt, note, message_id)
            VALUES (
                task.tenant, task.id, task.version, 'transition', moment, 'worker', task.fence,
                task.transitions, task.state, in_states[i], '', 0, in_notes[i],
                coalesce(in_message_ids[i], ''));
            task.state := in_states[i];
            task.updated_at := moment;
            task.note := in_notes[i];
            task.status_seq := said;
            task.metadata := coalesce(in_metadatas[i], task.metadata);
            task.pause_requested := task.pause_requested AND task.state <> 'paused';
            announced := announced || task.version;
        END IF;
    END LOOP;
    IF task.state IN ('completed', 'failed', 'canceled', 'rejected') THEN
        task.cancel_requested := false;
        task.pause_requested := false;
    END IF;
    IF cardinality(announced) > 0 THEN
        UPDATE holdfast.tasks t SET
            state = task.state, updated_at = task.updated_at, note = task.note,
            status_seq = task.status_seq, metadata = task.metadata, version = task.version,
            transitions = task.transitions, cancel_requested = task.cancel_requested,
            pause_requested = task.pause_requested
        WHERE t.tenant = task.tenant AND t.id = task.id;
        IF task.has_push OR task.followed_until > v_now THEN
            PERFORM holdfast.tell_of_task(
                task.tenant, task.id, task.has_push, task.followed_until, v_now,
                VARIADIC announced);
        END IF;
    END IF;
    RETURN task.version;
END
$$;

-- Stores a task that somebody else runs, with what was reported of it.
CREATE OR REPLACE FUNCTION holdfast.adopt_task(
    in_tenant text, in_id text, in_owner text, in_context_id text, in_agent text,
    in_metadata text,
    in_kinds text[], in_states text[], in_notes text[], in_ats timestamptz[],
    in_metadatas text[], in_message_ids text[], in_message_ats timestamptz[], in_bodies text[],
    in_digests text[], in_artifact_ids text[], in_appends boolean[], in_lasts boolean[]
) RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    context record := holdfast.use_task_context(in_tenant, in_owner, in_context_id, v_now);
    task holdfast.tasks;
BEGIN
    -- A lane of its own: it shares its context with whatever else is at work there.
    INSERT INTO holdfast.tasks (
        tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
        submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
        transitions, due_at, lane, copied, adopted)
    VALUES (
        in_tenant, in_id, in_owner, in_context_id, context.key, in_agent, in_metadata,
        0, '', '', '', v_now, 'submitted', v_now, 1, 1, 'infinity', in_id, true, true)
    ON CONFLICT DO NOTHING RETURNING * INTO task;
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF007', 'there is such a task',
                              jsonb_build_object('kind', 'task', 'key', in_id));
    END IF;
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, number, to_state, worker, attempt,
        note, message_id)
    VALUES (in_tenant, in_id, 1, 'transition', v_now, 'client', 0, 1, 'submitted', '', 0,
            '""', '');
    PERFORM holdfast.report_of_task(
        task, in_kinds, in_states, in_notes, in_ats, in_metadatas, in_message_ids, in_message_ats,
        in_bodies, in_digests, in_artifact_ids, in_appends, in_lasts);
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Stores what was reported of a task, if it has the expected version: its version afterwards.
CREATE OR REPLACE FUNCTION holdfast.record_of_task(
    in_tenant text, in_id text, in_owner text, in_expected bigint,
    in_kinds text[], in_states text[], in_notes text[], in_ats timestamptz[],
    in_metadatas text[], in_message_ids text[], in_message_ats timestamptz[], in_bodies text[],
    in_digests text[], in_artifact_ids text[], in_appends boolean[], in_lasts boolean[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
BEGIN
    IF NOT task.adopted THEN
        PERFORM holdfast.fail(
            'HF001',
            format('task %L is run by workers: only an adopted task takes reports', in_id),
            jsonb_build_object('kind', 'task', 'key', in_id));
    ELSIF task.version <> in_expected THEN
        PERFORM holdfast.fail('HF003', 'the task has another version', jsonb_build_object(
            'kind', 'task', 'key', in_id, 'expected', in_expected, 'actual', task.version));
    END IF;
    RETURN holdfast.report_of_task(
        task, in_kinds, in_states, in_notes, in_ats, in_metadatas, in_message_ids, in_message_ats,
        in_bodies, in_digests, in_artifact_ids, in_appends, in_lasts);
END
$$;

-- Raises for a request that only workers could carry out.
CREATE OR REPLACE FUNCTION holdfast.refuse_adopted(task holdfast.tasks) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF task.adopted THEN
        PERFORM holdfast.fail(
            'HF001',
            format('task %L is run by somebody else: record what they report', task.id),
            jsonb_build_object('kind', 'task', 'key', task.id));
    END IF;
END
$$;

-- Removes a task with all it holds, and its context with the last task; whether it was there.
CREATE OR REPLACE FUNCTION holdfast.delete_task(in_tenant text, in_id text, in_owner text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    context bigint;
BEGIN
    -- First the context, as clear_task_context does: whoever adds a task to it has finished then.
    SELECT c.key INTO context FROM holdfast.task_contexts c, holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id AND (in_owner IS NULL OR t.owner = in_owner)
        AND c.tenant = t.tenant AND c.owner = t.owner AND c.id = t.context_id
    FOR UPDATE OF c;
    -- Whoever writes to the task holds its row, and finds no task afterwards.
    DELETE FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id AND (in_owner IS NULL OR t.owner = in_owner);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM holdfast.task_events e WHERE e.tenant = in_tenant AND e.task_id = in_id;
    DELETE FROM holdfast.task_artifacts a WHERE a.tenant = in_tenant AND a.task_id = in_id;
    DELETE FROM holdfast.task_feedback f WHERE f.tenant = in_tenant AND f.task_id = in_id;
    DELETE FROM holdfast.push_configs p WHERE p.tenant = in_tenant AND p.task_id = in_id;
    DELETE FROM holdfast.outbox o WHERE o.tenant = in_tenant AND o.task_id = in_id;
    DELETE FROM holdfast.task_contexts c
    WHERE c.key = context AND c.tenant = in_tenant AND NOT EXISTS (
        SELECT FROM holdfast.tasks t
        WHERE t.context_key = context /* distributed: AND t.tenant = in_tenant */);
    PERFORM holdfast.notify(in_tenant || E'\ntask\n' || in_id);
    RETURN true;
END
$$;
