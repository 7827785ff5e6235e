-- version: 4
-- Tasks that go on from what another task stored.

-- Queues a task with the messages, steps and artifacts that another one had after an event; the same
-- submit key finds the task that is there.
CREATE OR REPLACE FUNCTION holdfast.fork_task(
    in_tenant text, in_id text, in_owner text, in_new_id text, in_new_context_id text,
    in_at bigint, in_failed boolean, in_submit_key text, in_digest text,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text
) RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    old holdfast.tasks;
    context record;
    context_name text;
    known text;
    last bigint;
BEGIN
    SELECT * INTO old FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id AND (in_owner IS NULL OR t.owner = in_owner);
    IF FOUND THEN
        context_name := CASE WHEN in_failed THEN old.context_id ELSE in_new_context_id END;
        -- First the context, then the task, as clear_task_context does.
        context := holdfast.use_task_context(in_tenant, old.owner, context_name, v_now);
    END IF;
    -- Locked, so that nobody deletes it meanwhile.
    old := holdfast.lock_task(in_tenant, in_id, in_owner);
    PERFORM holdfast.refuse_adopted(old);
    known := holdfast.find_submitted(in_tenant, in_new_id, old.owner, in_submit_key, in_digest);
    IF known IS NULL THEN
        IF in_failed AND old.state <> 'failed' THEN
            PERFORM holdfast.fail_task_edge(old.id, old.state, 'submitted');
        END IF;
        INSERT INTO holdfast.tasks (
            tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
            submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
            transitions, due_at, has_step_chunks, has_cleanup, priority, limit_key)
        VALUES (
            in_tenant, in_new_id, old.owner, context_name, context.key, old.agent, old.metadata,
            old.max_attempts, in_submit_key, in_digest, old.id, v_now, 'submitted', v_now, 1,
            1, v_now, old.has_step_chunks, old.has_cleanup, old.priority, old.limit_key)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            known := holdfast.find_submitted(
                in_tenant, in_new_id, old.owner, in_submit_key, in_digest);
        END IF;
    END IF;
    IF known IS NOT NULL THEN
        IF context.made THEN
            DELETE FROM holdfast.task_contexts c
            WHERE c.tenant = in_tenant AND c.owner = old.owner AND c.id = context_name
                AND c.key = context.key;
        END IF;
        RETURN QUERY SELECT * FROM holdfast.task_records r
        WHERE r.tenant = in_tenant AND r.id = known;
        RETURN;
    END IF;
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, number, to_state, worker, attempt, note,
        message_id)
    VALUES (in_tenant, in_new_id, 1, 'transition', v_now, 'client', 0, 1, 'submitted', '', 0, '""',
            '');
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, message_id, written_at, context_key, stored,
        step_key, step_kind, step_name, step_occurrence, chunks, digest, artifact_id, append,
        last_chunk, name, metadata, body)
    SELECT in_tenant, in_new_id, 1 + row_number() OVER (ORDER BY e.seq), e.kind, v_now, e.actor, 0,
        CASE WHEN f.other THEN in_message_id ELSE e.message_id END,
        CASE WHEN f.other THEN in_message_at ELSE e.written_at END,
        CASE WHEN e.kind = 'message' AND NOT in_failed THEN context.key END,
        CASE WHEN e.kind = 'message' AND NOT in_failed
             THEN nextval('holdfast.task_messages_stored') END,
        CASE WHEN e.step_key IS NOT NULL THEN holdfast.task_step_key(
            in_new_id, e.step_kind, e.step_name, e.step_occurrence) END,
        e.step_kind, e.step_name, e.step_occurrence, e.chunks,
        CASE WHEN f.other THEN in_message_digest ELSE e.digest END,
        e.artifact_id, e.append, e.last_chunk, e.name, e.metadata,
        CASE WHEN f.other THEN in_message_body ELSE e.body END
    FROM holdfast.events_of_fork(in_tenant, old.id, coalesce(in_at, old.version)) e
    CROSS JOIN LATERAL (SELECT e.seq = 2 AND in_message_id IS NOT NULL AS other) f
    ORDER BY e.seq;
    GET DIAGNOSTICS last = ROW_COUNT;
    UPDATE holdfast.tasks t SET version = 1 + last
    WHERE t.tenant = in_tenant AND t.id = in_new_id;
    INSERT INTO holdfast.task_artifacts (tenant, task_id, id, begun, anew, fence, complete)
    SELECT in_tenant, in_new_id, e.artifact_id, min(e.seq),
        max(e.seq) FILTER (WHERE NOT e.append), 0, (array_agg(e.last_chunk ORDER BY e.seq DESC))[1]
    FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_new_id AND e.kind = 'artifact'
    GROUP BY e.artifact_id;
    INSERT INTO holdfast.task_cleanup (tenant, task_id, kind, ref, agent, owner, context_id)
    SELECT in_tenant, in_new_id, c.kind, c.ref, c.agent, old.owner, context_name
    FROM holdfast.task_cleanup c
    WHERE c.tenant = in_tenant AND c.task_id = old.id AND c.kind <> 'run';
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_new_id;
END
$$;

-- What a fork takes over of a task as it was after an event: messages, steps and artifacts.
CREATE OR REPLACE FUNCTION holdfast.events_of_fork(in_tenant text, in_id text, in_until bigint)
RETURNS SETOF holdfast.task_events
LANGUAGE sql STABLE
AS $$
    SELECT e.* FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq <= in_until
        -- What a child has completed is taken over; a child that has not is submitted anew.
        AND (e.kind <> 'step' OR e.step_kind <> 'child' OR e.fence = 0 OR EXISTS (
            SELECT FROM holdfast.tasks c
            -- The body is {"task_id":"..."}, and no id that the ledger makes has to be escaped.
            WHERE c.tenant = in_tenant AND c.id = substr(e.body, 13, length(e.body) - 14)
                AND c.parent_id = in_id AND c.state = 'completed'))
        AND (e.kind IN ('message', 'step') OR e.kind = 'artifact' AND (
            -- Part of its artifact as it was then, or written in a step that was stored then.
            NOT EXISTS (
                SELECT FROM holdfast.task_events n
                WHERE n.tenant = in_tenant AND n.task_id = e.task_id AND n.kind = 'artifact'
                    AND n.artifact_id = e.artifact_id AND n.seq > e.seq AND NOT n.append
                    AND n.seq <= in_until)
            OR EXISTS (
                SELECT FROM holdfast.task_events s
                WHERE s.tenant = in_tenant AND s.kind = 'step' AND s.step_key = e.step_key
                    AND s.fence = e.fence AND s.seq <= in_until)))
$$;
