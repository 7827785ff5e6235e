-- version: 4
-- Tasks that other tasks submit and wait for.

-- Counts a child less that a task waits for; the last one makes the task due. Whoever ends a child
-- locks the child first and its parent then; so does a parent that begins to wait.
CREATE OR REPLACE FUNCTION holdfast.count_ended_child(in_tenant text, in_parent_id text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    parent holdfast.tasks;
BEGIN
    SELECT * INTO parent FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_parent_id FOR NO KEY UPDATE;
    IF NOT FOUND OR parent.waits_for = 0 THEN
        RETURN;
    END IF;
    IF parent.waits_for = 1 AND parent.state = 'submitted' THEN
        parent.due_at := holdfast.now();
    END IF;
    UPDATE holdfast.tasks t SET waits_for = parent.waits_for - 1, due_at = parent.due_at
    WHERE t.tenant = in_tenant AND t.id = in_parent_id;
    IF parent.waits_for = 1 THEN
        PERFORM holdfast.notify('work');
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.wake_parent_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.count_ended_child(NEW.tenant, NEW.parent_id);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.forget_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF OLD.has_inbox THEN
        DELETE FROM holdfast.task_inbox i WHERE i.tenant = OLD.tenant AND i.task_id = OLD.id;
    END IF;
    IF OLD.awaited AND OLD.state NOT IN ('completed', 'failed', 'canceled', 'rejected') THEN
        PERFORM holdfast.count_ended_child(OLD.tenant, OLD.parent_id);
    END IF;
    RETURN NULL;
END
$$;

-- Locks the children of a task that have not ended, and notes that it waits for them; how many.
CREATE OR REPLACE FUNCTION holdfast.await_children(in_tenant text, in_id text, in_children text[])
RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    live bigint := 0;
BEGIN
    IF cardinality(in_children) > 0 THEN
        PERFORM FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.id = ANY (in_children) AND t.parent_id = in_id
        ORDER BY t.id FOR NO KEY UPDATE;
        UPDATE holdfast.tasks t SET awaited = true
        WHERE t.tenant = in_tenant AND t.id = ANY (in_children) AND t.parent_id = in_id
            AND t.state NOT IN ('completed', 'failed', 'canceled', 'rejected');
        GET DIAGNOSTICS live = ROW_COUNT;
    END IF;
    RETURN live;
END
$$;

-- Submits a task as a child of one that is working under this fence, and stores the step that names
-- it; the child that is stored, if the step is. No row if that child is gone.
CREATE OR REPLACE FUNCTION holdfast.submit_child_task(
    in_tenant text, in_parent_id text, in_fence bigint,
    in_step_kind text, in_step_name text, in_step_occurrence bigint, in_step_body text,
    in_step_digest text,
    in_id text, in_context_id text, in_new_context_id text, in_agent text, in_metadata text,
    in_max_attempts bigint, in_run_after timestamptz, in_run_after_seconds double precision,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    parent holdfast.tasks := holdfast.hold_task(in_tenant, in_parent_id, in_fence);
    v_now timestamptz := holdfast.now();
    child_id text := in_id;
    known holdfast.task_events;
BEGIN
    SELECT * INTO known FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.kind = 'step' AND e.step_key = holdfast.task_step_key(
        in_parent_id, in_step_kind, in_step_name, in_step_occurrence);
    IF FOUND THEN
        IF known.digest <> in_step_digest THEN
            PERFORM holdfast.fail(
                'HF001',
                format('%s is stored for other arguments: give it another name', in_step_name),
                jsonb_build_object('kind', 'step', 'key', in_step_name));
        END IF;
        child_id := known.body::jsonb ->> 'task_id';
    ELSIF parent.cancel_requested THEN
        PERFORM holdfast.fail(
            'HF001',
            format('task %L was asked to cancel: it submits no more tasks', in_parent_id),
            jsonb_build_object('kind', 'task', 'key', in_parent_id));
    ELSE
        PERFORM holdfast.submit_task(
            in_tenant, in_id, parent.owner, in_context_id, in_new_context_id, in_agent,
            in_metadata, in_max_attempts, '', '', '', in_run_after, in_run_after_seconds,
            in_message_id, in_message_at, in_message_body, in_message_digest,
            '{}', '{}', '{}', '{}');
        UPDATE holdfast.tasks t SET parent_id = in_parent_id
        WHERE t.tenant = in_tenant AND t.id = in_id;
        PERFORM holdfast.keep_task_step(
            in_tenant, in_parent_id, parent.version + 1, in_fence, parent.has_step_chunks,
            'worker', v_now, in_step_kind, in_step_name, in_step_occurrence, in_step_body,
            in_step_digest, '');
        UPDATE holdfast.tasks t SET version = parent.version + 1, attempts = 0
        WHERE t.tenant = in_tenant AND t.id = in_parent_id;
        PERFORM holdfast.tell_of_task(
            in_tenant, in_parent_id, false, parent.followed_until, v_now, NULL);
    END IF;
    RETURN QUERY SELECT * FROM holdfast.linked_task_records r
    WHERE r.tenant = in_tenant AND r.id = child_id;
END
$$;

-- Cancels a task, its children and all below them; the task. Those at the bottom come first: whoever
-- ends a child locks its parent afterwards. A task that is asked to cancel submits no more children,
-- so that this ends.
CREATE OR REPLACE FUNCTION holdfast.cancel_task_tree(
    in_tenant text, in_id text, in_owner text, in_note text
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    chosen text[];
    one text;
    task holdfast.tasks;
BEGIN
    PERFORM FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id AND (in_owner IS NULL OR t.owner = in_owner);
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF002', 'there is no such task',
                              jsonb_build_object('kind', 'task', 'key', in_id));
    END IF;
    LOOP
        WITH RECURSIVE tree AS (
            SELECT in_id COLLATE "C" AS id, 0 AS depth
            UNION ALL
            SELECT c.id, p.depth + 1 FROM tree p CROSS JOIN LATERAL (
                SELECT t.id FROM holdfast.tasks t
                WHERE t.tenant = in_tenant AND t.parent_id = p.id
                    AND t.parent_id <> ''
            ) c
        )
        SELECT array_agg(t.id ORDER BY p.depth DESC, t.id) INTO chosen
        FROM tree p JOIN holdfast.tasks t ON t.tenant = in_tenant AND t.id = p.id
        WHERE t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
            AND NOT t.cancel_requested;
        EXIT WHEN chosen IS NULL;
        FOREACH one IN ARRAY chosen LOOP
            SELECT * INTO task FROM holdfast.tasks t
            WHERE t.tenant = in_tenant AND t.id = one FOR NO KEY UPDATE;
            IF FOUND THEN
                PERFORM holdfast.cancel_task(in_tenant, one, NULL, in_note);
                IF task.state = 'working' THEN
                    PERFORM holdfast.notify(E'requests\n' || task.worker);
                END IF;
            END IF;
        END LOOP;
    END LOOP;
    RETURN QUERY SELECT * FROM holdfast.linked_task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;
