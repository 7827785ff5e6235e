-- version: 4
-- What a running task stores.

-- Counts one more event of a task that is working under this fence; else the lease is lost.
CREATE OR REPLACE FUNCTION holdfast.count_task_event(
    in_tenant text, in_id text, in_fence bigint,
    OUT seq bigint, OUT context_key bigint, OUT has_push boolean, OUT has_step_chunks boolean,
    OUT followed_until timestamptz
)
LANGUAGE plpgsql
AS $$
BEGIN
    -- Written so that no index on tasks at work fits: the row is found by its key.
    UPDATE holdfast.tasks t SET version = t.version + 1
    WHERE t.tenant = in_tenant AND t.id = in_id
        AND CASE WHEN t.state = 'working' THEN t.fence END = in_fence
    RETURNING t.version, t.context_key, t.has_push, t.has_step_chunks, t.followed_until
    INTO seq, context_key, has_push, has_step_chunks, followed_until;
    IF NOT FOUND THEN
        PERFORM holdfast.fail_lease(in_id);
    END IF;
END
$$;

-- Adds a message, once for its id: the one that is stored; its body only if it is another's.
CREATE OR REPLACE FUNCTION holdfast.append_task_message(
    in_tenant text, in_id text, in_fence bigint,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    OUT out_id text, OUT out_at timestamptz, OUT out_seq bigint, OUT out_body text
)
LANGUAGE plpgsql
AS $$
DECLARE
    task record := holdfast.count_task_event(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
BEGIN
    out_id := in_message_id;
    out_at := in_message_at;
    out_seq := holdfast.say_in_task(
        in_tenant, in_id, task.seq, task.context_key, in_fence, 'worker', v_now,
        in_message_id, in_message_at, in_message_body, in_message_digest);
    IF out_seq = task.seq THEN
        IF task.has_push OR task.followed_until > v_now THEN
            PERFORM holdfast.tell_of_task(
                in_tenant, in_id, task.has_push, task.followed_until, v_now, out_seq);
        END IF;
        RETURN;
    END IF;
    UPDATE holdfast.tasks t SET version = t.version - 1
    WHERE t.tenant = in_tenant AND t.id = in_id;
    SELECT e.written_at, e.body INTO out_at, out_body FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq = out_seq;
END
$$;

-- Adds a message under the key of a step: the one that was stored first; its body only if it is
-- another's.
CREATE OR REPLACE FUNCTION holdfast.append_task_remark(
    in_tenant text, in_id text, in_fence bigint,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_step_kind text, in_step_name text, in_step_occurrence bigint, in_result text,
    OUT out_id text, OUT out_at timestamptz, OUT out_seq bigint, OUT out_body text
)
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.hold_task(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
BEGIN
    out_id := in_message_id;
    out_at := in_message_at;
    -- The step comes after the message, and is written before it: it decides whether both are.
    IF holdfast.keep_task_step(
        in_tenant, in_id, task.version + 2, in_fence, task.has_step_chunks, 'worker', v_now,
        in_step_kind, in_step_name, in_step_occurrence, in_result, '""', in_message_id)
    THEN
        out_seq := holdfast.say_in_task(
            in_tenant, in_id, task.version + 1, task.context_key, in_fence, 'worker', v_now,
            in_message_id, in_message_at, in_message_body, in_message_digest);
        IF out_seq <= task.version THEN
            UPDATE holdfast.task_events e SET seq = task.version + 1
            WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq = task.version + 2;
        END IF;
        UPDATE holdfast.tasks t
        SET version = greatest(task.version, out_seq) + 1, attempts = 0
        WHERE t.tenant = in_tenant AND t.id = in_id;
        PERFORM holdfast.tell_of_task(
            in_tenant, in_id, task.has_push, task.followed_until, v_now,
            CASE WHEN out_seq > task.version THEN out_seq END);
        IF out_seq > task.version THEN
            RETURN;
        END IF;
    ELSE
        SELECT e.message_id INTO out_id FROM holdfast.task_events e
        WHERE e.tenant = in_tenant AND e.kind = 'step' AND e.step_key =
            holdfast.task_step_key(in_id, in_step_kind, in_step_name, in_step_occurrence);
    END IF;
    SELECT e.written_at, e.seq, e.body INTO out_at, out_seq, out_body
    FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.kind = 'message'
        AND e.task_id = in_id AND e.message_id = out_id;
    IF NOT FOUND THEN
        PERFORM holdfast.fail(
            'HF001', format('%s is stored, and not as a message', in_step_name),
            jsonb_build_object('kind', 'step', 'key', in_step_name));
    END IF;
END
$$;

-- Stores the result of a step: the one that is stored, which is the first; its result only if it
-- is another's. A failed try of a step is no progress.
CREATE OR REPLACE FUNCTION holdfast.store_task_step(
    in_tenant text, in_id text, in_fence bigint,
    in_kind text, in_name text, in_occurrence bigint,
    in_body text, in_digest text, in_message_id text, in_seconds double precision,
    OUT out_at timestamptz, OUT out_digest text, OUT out_fence bigint, OUT out_chunks bigint,
    OUT out_body text, OUT out_started_at timestamptz
)
LANGUAGE plpgsql
AS $$
DECLARE
    task record := holdfast.count_task_event(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
    started timestamptz := v_now - make_interval(secs => in_seconds);
    fresh boolean := holdfast.keep_timed_task_step(
        in_tenant, in_id, task.seq, in_fence, task.has_step_chunks, 'worker', v_now,
        in_kind, in_name, in_occurrence, in_body, in_digest, in_message_id, started);
BEGIN
    IF fresh AND NOT task.has_step_chunks THEN
        out_at := v_now;
        out_digest := in_digest;
        out_fence := in_fence;
        out_chunks := 0;
        out_started_at := started;
    ELSE
        SELECT e.at, e.digest, e.fence, e.chunks, e.body, e.started_at
        INTO out_at, out_digest, out_fence, out_chunks, out_body, out_started_at
        FROM holdfast.task_events e
        WHERE e.tenant = in_tenant AND e.kind = 'step'
            AND e.step_key = holdfast.task_step_key(in_id, in_kind, in_name, in_occurrence);
    END IF;
    IF fresh THEN
        UPDATE holdfast.tasks t SET attempts = 0
        WHERE t.tenant = in_tenant AND t.id = in_id AND t.attempts > 0 AND in_kind <> 'try';
        IF task.followed_until > v_now THEN
            PERFORM holdfast.tell_of_task(
                in_tenant, in_id, false, task.followed_until, v_now, NULL);
        END IF;
        RETURN;
    END IF;
    IF in_digest <> '""' AND out_digest <> '""' AND in_digest <> out_digest THEN
        PERFORM holdfast.fail(
            'HF001', format('%s is stored for other arguments: give it another name', in_name),
            jsonb_build_object('kind', 'step', 'key', in_name));
    END IF;
    UPDATE holdfast.tasks t SET version = t.version - 1
    WHERE t.tenant = in_tenant AND t.id = in_id;
END
$$;

-- Writes a chunk at this place; the first of an attempt begins its artifact anew. Whether it goes
-- on where the last one ended.
CREATE OR REPLACE FUNCTION holdfast.write_task_chunk(
    in_tenant text, in_task_id text, in_seq bigint, in_fence bigint, in_now timestamptz,
    in_artifact_id text, in_body text, in_append boolean, in_last boolean, in_name text,
    in_metadata text, in_step_kind text, in_step_name text, in_step_occurrence bigint,
    in_strict boolean
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    artifact holdfast.task_artifacts;
    goes_on boolean;
BEGIN
    SELECT * INTO artifact FROM holdfast.task_artifacts a
    WHERE a.tenant = in_tenant AND a.task_id = in_task_id AND a.id = in_artifact_id;
    goes_on := in_append AND coalesce(artifact.fence = in_fence, false);
    IF in_strict AND goes_on AND artifact.complete THEN
        PERFORM holdfast.fail(
            'HF001',
            format('artifact %L has its last chunk: begin it anew to change it', in_artifact_id),
            jsonb_build_object('kind', 'artifact', 'key', in_artifact_id));
    END IF;
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, artifact_id, append, last_chunk, name,
        metadata, body, step_key, step_kind, step_name, step_occurrence)
    VALUES (
        in_tenant, in_task_id, in_seq, 'artifact', in_now, 'worker', in_fence, in_artifact_id,
        goes_on, in_last, in_name, in_metadata, in_body,
        holdfast.task_step_key(in_task_id, in_step_kind, in_step_name, in_step_occurrence),
        in_step_kind, in_step_name, in_step_occurrence);
    IF artifact.id IS NULL THEN
        INSERT INTO holdfast.task_artifacts (tenant, task_id, id, begun, anew, fence, complete)
        VALUES (in_tenant, in_task_id, in_artifact_id, in_seq, in_seq, in_fence, in_last);
    ELSIF NOT goes_on OR artifact.complete <> in_last THEN
        UPDATE holdfast.task_artifacts a SET
            anew = CASE WHEN goes_on THEN a.anew ELSE in_seq END, fence = in_fence,
            complete = in_last
        WHERE a.tenant = in_tenant AND a.task_id = in_task_id AND a.id = in_artifact_id;
    END IF;
    RETURN goes_on;
END
$$;

-- Adds a chunk to an artifact; whether it goes on where the last one ended.
CREATE OR REPLACE FUNCTION holdfast.append_task_chunk(
    in_tenant text, in_id text, in_fence bigint, in_artifact_id text, in_body text,
    in_append boolean, in_last boolean, in_name text, in_metadata text,
    in_step_kind text, in_step_name text, in_step_occurrence bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    task record := holdfast.count_task_event(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
    goes_on boolean := holdfast.write_task_chunk(
        in_tenant, in_id, task.seq, in_fence, v_now, in_artifact_id, in_body, in_append, in_last,
        in_name, in_metadata, in_step_kind, in_step_name, in_step_occurrence, true);
BEGIN
    IF in_step_name IS NOT NULL AND NOT task.has_step_chunks THEN
        UPDATE holdfast.tasks t SET has_step_chunks = true
        WHERE t.tenant = in_tenant AND t.id = in_id;
    END IF;
    IF task.has_push OR task.followed_until > v_now THEN
        PERFORM holdfast.tell_of_task(
            in_tenant, in_id, task.has_push, task.followed_until, v_now, task.seq);
    END IF;
    RETURN goes_on;
END
$$;

-- Writes the chunks of a stored step again, once in an attempt; the chunks as they are stored.
CREATE OR REPLACE FUNCTION holdfast.restore_task_chunks(
    in_tenant text, in_id text, in_fence bigint,
    in_step_kind text, in_step_name text, in_step_occurrence bigint
) RETURNS SETOF holdfast.task_events
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.hold_task(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
    key text := holdfast.task_step_key(in_id, in_step_kind, in_step_name, in_step_occurrence);
    first bigint := task.version + 1;
    chunk holdfast.task_events;
BEGIN
    FOR chunk IN
        SELECT c.* FROM holdfast.task_events s
        JOIN holdfast.task_events c
            ON c.tenant = in_tenant AND c.step_key = s.step_key AND c.fence = s.fence
            AND c.kind = 'artifact'
        WHERE s.tenant = in_tenant AND s.step_key = key AND s.kind = 'step'
            AND NOT EXISTS (
                SELECT FROM holdfast.task_events d
                WHERE d.tenant = in_tenant AND d.step_key = key AND d.fence = in_fence
                    AND d.kind = 'artifact')
        ORDER BY c.seq
    LOOP
        task.version := task.version + 1;
        PERFORM holdfast.write_task_chunk(
            in_tenant, in_id, task.version, in_fence, v_now, chunk.artifact_id, chunk.body,
            chunk.append, chunk.last_chunk, chunk.name, chunk.metadata, chunk.step_kind,
            chunk.step_name, chunk.step_occurrence, false);
        PERFORM holdfast.tell_of_task(
            in_tenant, in_id, task.has_push, task.followed_until, v_now, task.version);
    END LOOP;
    IF task.version >= first THEN
        UPDATE holdfast.tasks t SET version = task.version
        WHERE t.tenant = in_tenant AND t.id = in_id;
        RETURN QUERY SELECT * FROM holdfast.task_events e
        WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq >= first ORDER BY e.seq;
    END IF;
END
$$;
