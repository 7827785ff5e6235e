-- version: 4
-- Messages to running tasks.

-- Whether a task has a message of a topic that nobody received.
CREATE OR REPLACE FUNCTION holdfast.has_message(in_tenant text, in_task_id text, in_topic text)
RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT FROM holdfast.task_inbox i
        WHERE i.tenant = in_tenant AND i.task_id = in_task_id
            AND i.topic = in_topic AND NOT i.received)
$$;

-- Stores a message to a task, once for its id; a task that waits for its topic is due now.
CREATE OR REPLACE FUNCTION holdfast.send_to_task(
    in_tenant text, in_id text, in_owner text, in_message_id text, in_topic text, in_body text,
    in_digest text, in_limit bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
    known text;
    wakes boolean := task.state = 'submitted' AND task.waits_topic IS NOT DISTINCT FROM in_topic;
    next_due timestamptz := CASE WHEN wakes THEN holdfast.now() ELSE task.due_at END;
BEGIN
    PERFORM holdfast.refuse_adopted(task);
    SELECT i.digest INTO known FROM holdfast.task_inbox i
    WHERE i.tenant = in_tenant AND i.task_id = in_id AND i.id = in_message_id;
    IF FOUND THEN
        IF known <> in_digest THEN
            PERFORM holdfast.fail(
                'HF001', format('message %L is there with another body', in_message_id),
                jsonb_build_object('kind', 'message', 'key', in_message_id));
        END IF;
        RETURN;
    END IF;
    IF task.state IN ('completed', 'failed', 'canceled', 'rejected') THEN
        PERFORM holdfast.fail(
            'HF001', format('task %L has ended: it receives no more messages', in_id),
            jsonb_build_object('kind', 'task', 'key', in_id));
    END IF;
    IF (SELECT count(*) FROM (
            SELECT FROM holdfast.task_inbox i
            WHERE i.tenant = in_tenant AND i.task_id = in_id
                AND NOT i.received
            LIMIT in_limit) waiting) >= in_limit
    THEN
        PERFORM holdfast.fail(
            'HF001',
            format('task %L has %s messages that it has not received: send again later', in_id,
                   in_limit),
            jsonb_build_object('kind', 'task', 'key', in_id));
    END IF;
    INSERT INTO holdfast.task_inbox (tenant, task_id, id, topic, body, digest, sent_at)
    VALUES (in_tenant, in_id, in_message_id, in_topic, in_body, in_digest, holdfast.now());
    IF wakes OR NOT task.has_inbox THEN
        UPDATE holdfast.tasks t SET
            has_inbox = true, due_at = next_due
        WHERE t.tenant = in_tenant AND t.id = in_id;
    END IF;
    IF wakes THEN
        PERFORM holdfast.notify('work');
    END IF;
END
$$;

-- Stores the oldest message of a topic as the result of a step, once: the step. No row without a
-- message, unless it is the last look.
CREATE OR REPLACE FUNCTION holdfast.receive_in_task(
    in_tenant text, in_id text, in_fence bigint, in_kind text, in_name text, in_occurrence bigint,
    in_topic text, in_last boolean
) RETURNS SETOF holdfast.task_events
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.hold_task(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
    message holdfast.task_inbox;
BEGIN
    RETURN QUERY SELECT * FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.kind = 'step'
        AND e.step_key = holdfast.task_step_key(in_id, in_kind, in_name, in_occurrence);
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO message FROM holdfast.task_inbox i
    WHERE i.tenant = in_tenant AND i.task_id = in_id
        AND i.topic = in_topic AND NOT i.received
    ORDER BY i.number LIMIT 1;
    IF FOUND THEN
        UPDATE holdfast.task_inbox i SET received = true
        WHERE i.tenant = in_tenant AND i.task_id = in_id AND i.id = message.id;
    ELSIF NOT in_last THEN
        RETURN;
    END IF;
    PERFORM holdfast.keep_task_step(
        in_tenant, in_id, task.version + 1, in_fence, task.has_step_chunks, 'worker', v_now,
        in_kind, in_name, in_occurrence,
        '{"id":' || coalesce(to_json(message.id)::text, 'null')
            || ',"message":' || coalesce(message.body, 'null') || '}',
        '""', '');
    UPDATE holdfast.tasks t SET version = task.version + 1, attempts = 0
    WHERE t.tenant = in_tenant AND t.id = in_id;
    PERFORM holdfast.tell_of_task(in_tenant, in_id, false, task.followed_until, v_now, NULL);
    RETURN QUERY SELECT * FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq = task.version + 1;
END
$$;
