-- version: 5
-- What clients ask of tasks.

-- The context, made on first use; held so that clear_context waits for whoever adds a task to it.
CREATE OR REPLACE FUNCTION holdfast.use_task_context(
    in_tenant text, in_owner text, in_id text, in_now timestamptz,
    OUT key bigint, OUT made boolean
)
LANGUAGE plpgsql
AS $$
BEGIN
    LOOP
        SELECT c.key INTO key FROM holdfast.task_contexts c
        WHERE c.tenant = in_tenant AND c.owner = in_owner AND c.id = in_id FOR KEY SHARE;
        made := NOT FOUND;
        EXIT WHEN FOUND;
        INSERT INTO holdfast.task_contexts AS c (tenant, owner, id, created_at)
        VALUES (in_tenant, in_owner, in_id, in_now)
        ON CONFLICT DO NOTHING RETURNING c.key INTO key;
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- The task that was submitted before, by its submit key or by its own id.
CREATE OR REPLACE FUNCTION holdfast.find_submitted(
    in_tenant text, in_id text, in_owner text, in_submit_key text, in_digest text
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    known holdfast.tasks;
BEGIN
    IF in_submit_key = '' THEN
        SELECT * INTO known FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = in_id;
    ELSE
        SELECT * INTO known FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.submit_key <> ''
            AND t.owner = in_owner AND t.submit_key = in_submit_key;
        IF known.submit_digest <> in_digest THEN
            PERFORM holdfast.fail(
                'HF001',
                format('submit key %L was used with other content: use a new key', in_submit_key),
                jsonb_build_object('kind', 'submit_key', 'key', in_submit_key));
        END IF;
    END IF;
    RETURN known.id;
END
$$;

-- Takes the answer to the question of a waiting task, once.
CREATE OR REPLACE FUNCTION holdfast.respond_to_task(
    in_tenant text, in_id text, in_owner text,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_result text
) RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
    v_now timestamptz := holdfast.now();
    said bigint := holdfast.say_in_task(
        in_tenant, in_id, task.version + 1, task.context_key, task.fence, 'client', v_now,
        in_message_id, in_message_at, in_message_body, in_message_digest);
BEGIN
    PERFORM holdfast.refuse_adopted(task);
    IF said > task.version THEN
        IF task.state NOT IN ('input-required', 'auth-required') THEN
            PERFORM holdfast.fail_task_edge(task.id, task.state, 'submitted');
        END IF;
        task.version := said;
        IF task.ask_name IS NOT NULL THEN
            PERFORM holdfast.keep_task_step(
                in_tenant, in_id, said + 1, task.fence, task.has_step_chunks, 'client', v_now,
                task.ask_kind, task.ask_name, task.ask_occurrence, in_result, '""', in_message_id);
            task.version := said + 1;
        END IF;
        task.attempts := 0;
        task.ask_kind := NULL;
        task.ask_name := NULL;
        task.ask_occurrence := NULL;
        task.ask_form := NULL;
        PERFORM holdfast.move_task(
            task, CASE WHEN task.pause_requested THEN 'paused' ELSE 'submitted' END,
            'client', v_now, in_said => said);
    END IF;
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- The same for an answer that was checked by a form; no row if the question has another one.
CREATE OR REPLACE FUNCTION holdfast.answer_task(
    in_tenant text, in_id text, in_owner text,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_result text, in_form text
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
BEGIN
    IF task.state IN ('input-required', 'auth-required') AND task.ask_form <> coalesce(in_form, '')
        AND NOT EXISTS (
            SELECT FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.kind = 'message'
                AND e.task_id = in_id AND e.message_id = in_message_id)
    THEN
        RETURN;
    END IF;
    PERFORM holdfast.respond_to_task(
        in_tenant, in_id, in_owner, in_message_id, in_message_at, in_message_body,
        in_message_digest, in_result);
    RETURN QUERY SELECT * FROM holdfast.linked_task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Stops a task at once, or asks its worker to; an ended one stays as it is.
CREATE OR REPLACE FUNCTION holdfast.cancel_task(in_tenant text, in_id text, in_owner text, in_note text)
RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
    v_now timestamptz := holdfast.now();
BEGIN
    IF task.state = 'working' THEN
        IF NOT task.cancel_requested THEN
            task.cancel_requested := true;
            PERFORM holdfast.request_of_task(task, 'cancel', v_now, in_note);
        END IF;
    ELSIF task.state NOT IN ('completed', 'failed', 'canceled', 'rejected') THEN
        PERFORM holdfast.move_task(task, 'canceled', 'client', v_now, in_note);
    END IF;
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Holds a queued task at once, any other as soon as it would go back to the queue.
CREATE OR REPLACE FUNCTION holdfast.pause_task(in_tenant text, in_id text, in_owner text, in_note text)
RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
    v_now timestamptz := holdfast.now();
BEGIN
    PERFORM holdfast.refuse_adopted(task);
    IF task.state IN ('completed', 'failed', 'canceled', 'rejected') THEN
        PERFORM holdfast.fail_task_edge(task.id, task.state, 'paused');
    ELSIF task.state = 'submitted' THEN
        PERFORM holdfast.move_task(task, 'paused', 'client', v_now, in_note, task.run_after);
    ELSIF task.state <> 'paused' AND NOT task.pause_requested THEN
        task.pause_requested := true;
        PERFORM holdfast.request_of_task(task, 'pause', v_now, in_note);
    END IF;
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Lets a paused task go on, or withdraws a pause that was only requested.
CREATE OR REPLACE FUNCTION holdfast.resume_task(in_tenant text, in_id text, in_owner text, in_note text)
RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_id, in_owner);
    v_now timestamptz := holdfast.now();
BEGIN
    PERFORM holdfast.refuse_adopted(task);
    IF task.state IN ('completed', 'failed', 'canceled', 'rejected') THEN
        PERFORM holdfast.fail_task_edge(task.id, task.state, 'submitted');
    ELSIF task.state = 'paused' THEN
        -- A task that waits looks again: what it waits for may have come meanwhile.
        IF task.waits_for > 0 OR task.waits_topic IS NOT NULL THEN
            task.run_after := NULL;
            task.waits_for := 0;
            task.waits_topic := NULL;
        END IF;
        PERFORM holdfast.move_task(task, 'submitted', 'client', v_now, in_note, task.run_after);
    ELSIF task.pause_requested THEN
        task.pause_requested := false;
        PERFORM holdfast.request_of_task(task, 'resume', v_now, in_note);
    END IF;
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Keeps feedback on a task, once for each id.
CREATE OR REPLACE FUNCTION holdfast.append_task_feedback(
    in_tenant text, in_task_id text, in_owner text, in_id text, in_text text, in_rating bigint,
    in_metadata text, in_digest text
) RETURNS SETOF holdfast.task_feedback
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_task_id, in_owner);
    known holdfast.task_feedback;
BEGIN
    INSERT INTO holdfast.task_feedback (
        tenant, task_id, id, text, rating, metadata, digest, created_at)
    VALUES (in_tenant, in_task_id, in_id, in_text, in_rating, in_metadata, in_digest,
            holdfast.now())
    ON CONFLICT DO NOTHING;
    SELECT * INTO known FROM holdfast.task_feedback f
    WHERE f.tenant = in_tenant AND f.task_id = task.id AND f.id = in_id;
    IF known.digest <> in_digest THEN
        PERFORM holdfast.fail('HF001', format('feedback %L is there with another body', in_id),
                              jsonb_build_object('kind', 'feedback', 'key', in_id));
    END IF;
    RETURN NEXT known;
END
$$;

-- Lets a task know that somebody follows it; where it is, or no row.
CREATE OR REPLACE FUNCTION holdfast.watch_task(in_tenant text, in_id text, in_owner text)
RETURNS TABLE (out_state text, out_version bigint)
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    task holdfast.tasks;
BEGIN
    SELECT * INTO task FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id AND (in_owner IS NULL OR t.owner = in_owner);
    IF FOUND AND task.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
        AND coalesce(task.followed_until < v_now + interval '30 seconds', true)
    THEN
        UPDATE holdfast.tasks t SET followed_until = v_now + interval '60 seconds'
        WHERE t.tenant = in_tenant AND t.id = in_id RETURNING * INTO task;
    END IF;
    IF FOUND THEN
        out_state := task.state;
        out_version := task.version;
        RETURN NEXT;
    END IF;
END
$$;

-- Removes a context with its tasks and all they hold; how many tasks those were.
CREATE OR REPLACE FUNCTION holdfast.clear_task_context(in_tenant text, in_owner text, in_id text)
RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    context bigint;
    gone text[];
BEGIN
    -- Whoever adds a task has finished when this goes through, and begins anew afterwards.
    DELETE FROM holdfast.task_contexts c
    WHERE c.tenant = in_tenant AND c.owner = in_owner AND c.id = in_id RETURNING c.key INTO context;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    WITH locked AS (
        SELECT t.id FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.context_key = context
        ORDER BY t.id FOR UPDATE
    ), removed AS (
        DELETE FROM holdfast.tasks t USING locked l
        WHERE t.tenant = in_tenant AND t.id = l.id RETURNING t.id
    )
    SELECT coalesce(array_agg(id), '{}') INTO gone FROM removed;
    DELETE FROM holdfast.task_events e WHERE e.tenant = in_tenant AND e.task_id = ANY (gone);
    DELETE FROM holdfast.task_artifacts a WHERE a.tenant = in_tenant AND a.task_id = ANY (gone);
    DELETE FROM holdfast.task_feedback f WHERE f.tenant = in_tenant AND f.task_id = ANY (gone);
    DELETE FROM holdfast.push_configs p WHERE p.tenant = in_tenant AND p.task_id = ANY (gone);
    DELETE FROM holdfast.outbox o WHERE o.tenant = in_tenant AND o.task_id = ANY (gone);
    PERFORM holdfast.notify(in_tenant || E'\ntask\n' || id) FROM unnest(gone) id;
    RETURN cardinality(gone);
END
$$;
