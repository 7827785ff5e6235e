-- version: 6
-- What all functions of tasks use.

-- The last messages of a task, in order, as columns of equal length.
CREATE OR REPLACE FUNCTION holdfast.task_messages(in_tenant text, in_task_id text, in_last bigint)
RETURNS TABLE (message_ids text[], message_times timestamptz[], message_seqs bigint[],
               message_bodies text[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(m.message_id), array_agg(m.written_at), array_agg(m.seq), array_agg(m.body)
    FROM (
        SELECT * FROM (
            SELECT e.message_id, e.written_at, e.seq, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
            ORDER BY e.seq DESC LIMIT in_last
        ) newest ORDER BY seq
    ) m
$$;

-- The chunks that the artifacts of a task are made of now, or one artifact, as columns of equal
-- length: artifacts in the order they were begun, chunks in order.
CREATE OR REPLACE FUNCTION holdfast.task_artifacts(in_tenant text, in_task_id text, in_artifact_id text)
RETURNS TABLE (chunk_artifacts text[], chunk_times timestamptz[], chunk_bodies text[],
               chunk_appends boolean[], chunk_lasts boolean[], chunk_names text[],
               chunk_metadata text[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(c.artifact_id), array_agg(c.at), array_agg(c.body), array_agg(c.append),
           array_agg(c.last_chunk), array_agg(c.name), array_agg(c.metadata)
    FROM (
        SELECT e.artifact_id, e.at, e.body, e.append, e.last_chunk, e.name, e.metadata
        FROM holdfast.task_artifacts a
        JOIN holdfast.task_events e
            ON e.tenant = in_tenant AND e.task_id = a.task_id AND e.kind = 'artifact'
            AND e.artifact_id = a.id AND e.seq >= a.anew
        WHERE a.tenant = in_tenant AND a.task_id = in_task_id
            AND (in_artifact_id IS NULL OR a.id = in_artifact_id)
        ORDER BY a.begun, e.seq
    ) c
$$;

-- Raises an illegal move, for a table that has no such edge.
CREATE OR REPLACE FUNCTION holdfast.check_task_edge(in_id text, in_from text, in_to text, in_actor text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM holdfast.task_edges e
        WHERE e.from_state IS NOT DISTINCT FROM in_from AND e.to_state = in_to
            AND e.actor = in_actor
    ) THEN
        PERFORM holdfast.fail_task_edge(in_id, coalesce(in_from, 'nothing'), in_to);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.fail_task_edge(in_id text, in_from text, in_to text) RETURNS void
LANGUAGE sql
AS $$
    SELECT holdfast.fail('HF004', 'there is no such edge', jsonb_build_object(
        'kind', 'task', 'key', in_id, 'from_state', in_from, 'to_state', in_to))
$$;

-- A moment, or the one that is so many seconds from now.
CREATE OR REPLACE FUNCTION holdfast.task_moment(
    in_at timestamptz, in_seconds double precision, in_now timestamptz
) RETURNS timestamptz
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz;
BEGIN
    IF in_seconds IS NULL THEN
        RETURN in_at;
    END IF;
    -- Far below what a timestamp holds, so that the sum cannot fail.
    IF in_seconds BETWEEN -1e11 AND 4e11 THEN
        moment := in_now + make_interval(secs => in_seconds);
    END IF;
    IF moment >= '0001-01-01 00:00:00+00' AND moment < '10000-01-01 00:00:00+00' THEN
        RETURN moment;
    END IF;
    PERFORM holdfast.fail('HF006', 'is outside the years 1 to 9999',
                          jsonb_build_object('field', 'run_after'));
END
$$;

-- The reason of a change of state with what was noted; both as JSON text.
CREATE OR REPLACE FUNCTION holdfast.task_note(in_reason text, in_note text) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE WHEN in_note = '""' THEN to_json(in_reason)::text
                ELSE left(to_json(in_reason)::text, -1) || ': ' || substr(in_note, 2) END
$$;

-- The task with its row locked; one that is not there, or another owner's, is not found.
CREATE OR REPLACE FUNCTION holdfast.lock_task(in_tenant text, in_id text, in_owner text)
RETURNS holdfast.tasks
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks;
BEGIN
    SELECT * INTO task FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id AND (in_owner IS NULL OR t.owner = in_owner)
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF002', 'there is no such task',
                              jsonb_build_object('kind', 'task', 'key', in_id));
    END IF;
    RETURN task;
END
$$;

-- The task with its row locked, while it is working under this fence; else the lease is lost.
CREATE OR REPLACE FUNCTION holdfast.hold_task(in_tenant text, in_id text, in_fence bigint)
RETURNS holdfast.tasks
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks;
BEGIN
    SELECT * INTO task FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id FOR NO KEY UPDATE;
    IF NOT FOUND OR task.fence <> in_fence OR task.state <> 'working' THEN
        PERFORM holdfast.fail_lease(in_id);
    END IF;
    RETURN task;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.fail_lease(in_id text) RETURNS void
LANGUAGE sql
AS $$
    SELECT holdfast.fail('HF005', 'the lease is lost',
                         jsonb_build_object('kind', 'task', 'key', in_id))
$$;

-- Tells whoever follows the task, and puts announced events on their way to every push config.
CREATE OR REPLACE FUNCTION holdfast.tell_of_task(
    in_tenant text, in_id text, in_has_push boolean, in_followed_until timestamptz,
    in_now timestamptz, VARIADIC in_announced bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF in_has_push THEN
        INSERT INTO holdfast.outbox (tenant, task_id, config_id, seq, due_at)
        SELECT p.tenant, p.task_id, p.id, a.seq, in_now
        FROM unnest(in_announced) a (seq), holdfast.push_configs p
        WHERE p.tenant = in_tenant AND p.task_id = in_id AND a.seq IS NOT NULL
        ORDER BY a.seq, p.number;
        UPDATE holdfast.push_configs p
        SET next_seq = o.seq, next_due_at = o.due_at, next_number = o.number
        FROM holdfast.outbox o
        WHERE p.tenant = in_tenant AND p.task_id = in_id AND p.next_seq IS NULL
            AND o.tenant = in_tenant AND o.task_id = p.task_id AND o.config_id = p.id
            AND o.seq = (SELECT min(a.seq) FROM unnest(in_announced) a (seq));
    END IF;
    IF in_followed_until > in_now THEN
        PERFORM holdfast.notify(in_tenant || E'\ntask\n' || in_id);
    END IF;
END
$$;

-- What a step is called within its tenant; ids hold no control characters.
CREATE OR REPLACE FUNCTION holdfast.task_step_key(
    in_task_id text, in_kind text, in_name text, in_occurrence bigint
) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT in_task_id || E'\n' || in_occurrence::text || E'\n' || in_kind || E'\n' || in_name
$$;

-- Adds a message to the timeline, at this place, unless the task has it: where it is.
CREATE OR REPLACE FUNCTION holdfast.say_in_task(
    in_tenant text, in_task_id text, in_seq bigint, in_context_key bigint, in_fence bigint,
    in_actor text, in_now timestamptz,
    in_id text, in_at timestamptz, in_body text, in_digest text
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    known_seq bigint;
    known_digest text;
BEGIN
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence,
        message_id, written_at, context_key, stored, digest, body)
    VALUES (
        in_tenant, in_task_id, in_seq, 'message', in_now, in_actor, in_fence,
        in_id, in_at, in_context_key, nextval('holdfast.task_messages_stored'), in_digest, in_body)
    ON CONFLICT (tenant, message_id, task_id) WHERE kind = 'message' DO NOTHING;
    IF FOUND THEN
        RETURN in_seq;
    END IF;
    SELECT e.seq, e.digest INTO known_seq, known_digest FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.kind = 'message'
        AND e.task_id = in_task_id AND e.message_id = in_id;
    IF known_digest <> in_digest THEN
        PERFORM holdfast.fail('HF001', format('message %L is there with another body', in_id),
                              jsonb_build_object('kind', 'message', 'key', in_id));
    END IF;
    RETURN known_seq;
END
$$;

-- Adds a step to the timeline, at this place, unless the task has it; whether it is new.
CREATE OR REPLACE FUNCTION holdfast.keep_timed_task_step(
    in_tenant text, in_task_id text, in_seq bigint, in_fence bigint, in_has_chunks boolean,
    in_actor text, in_now timestamptz, in_kind text, in_name text, in_occurrence bigint,
    in_body text, in_digest text, in_message_id text, in_started_at timestamptz
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    key text := holdfast.task_step_key(in_task_id, in_kind, in_name, in_occurrence);
    written bigint := 0;
BEGIN
    IF in_has_chunks THEN
        SELECT count(*) INTO written FROM holdfast.task_events c
        WHERE c.tenant = in_tenant AND c.step_key = key AND c.fence = in_fence
            AND c.kind = 'artifact';
    END IF;
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, step_key, step_kind, step_name,
        step_occurrence, digest, message_id, body, chunks, started_at)
    VALUES (
        in_tenant, in_task_id, in_seq, 'step', in_now, in_actor, in_fence, key, in_kind, in_name,
        in_occurrence, in_digest, in_message_id, in_body, written, in_started_at)
    ON CONFLICT (tenant, step_key) WHERE kind = 'step' DO NOTHING;
    RETURN FOUND;
END
$$;

-- The same for a step of which nobody measured how long it took.
CREATE OR REPLACE FUNCTION holdfast.keep_task_step(
    in_tenant text, in_task_id text, in_seq bigint, in_fence bigint, in_has_chunks boolean,
    in_actor text, in_now timestamptz, in_kind text, in_name text, in_occurrence bigint,
    in_body text, in_digest text, in_message_id text
) RETURNS boolean
LANGUAGE sql
AS $$
    SELECT holdfast.keep_timed_task_step(
        in_tenant, in_task_id, in_seq, in_fence, in_has_chunks, in_actor, in_now, in_kind, in_name,
        in_occurrence, in_body, in_digest, in_message_id, NULL)
$$;

-- Takes one edge of the lifecycle that does not lead to working, logs it and tells of it. The row
-- is the locked one with what the caller has changed: version, attempts, ask, result, and what the
-- task waits for. A task that waits is due at its run_after, or never.
CREATE OR REPLACE FUNCTION holdfast.move_task(
    task holdfast.tasks, in_to text, in_actor text, in_now timestamptz, in_note text DEFAULT '""',
    in_run_after timestamptz DEFAULT NULL, in_said bigint DEFAULT NULL,
    in_status_seq bigint DEFAULT NULL, in_status_id text DEFAULT '',
    in_keeps_place boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    ended boolean := in_to IN ('completed', 'failed', 'canceled', 'rejected');
    left_attempts bigint := CASE WHEN in_to = 'paused' THEN 0 ELSE task.attempts END;
BEGIN
    PERFORM holdfast.check_task_edge(task.id, task.state, in_to, in_actor);
    UPDATE holdfast.tasks t SET
        state = in_to, updated_at = in_now, note = in_note, status_seq = in_status_seq,
        version = task.version + 1, transitions = task.transitions + 1, attempts = left_attempts,
        worker = '', lane = '', lease_expires_at = NULL, run_after = in_run_after,
        due_at = CASE WHEN in_to = 'submitted' AND NOT in_keeps_place
                      THEN CASE WHEN task.waits_for > 0 OR task.waits_topic IS NOT NULL
                                THEN greatest(coalesce(in_run_after, 'infinity'), in_now)
                                ELSE greatest(coalesce(in_run_after, in_now), in_now) END
                      ELSE t.due_at END,
        cancel_requested = t.cancel_requested AND NOT ended,
        pause_requested = t.pause_requested AND NOT ended AND in_to <> 'paused',
        ask_kind = task.ask_kind, ask_name = task.ask_name, ask_occurrence = task.ask_occurrence,
        ask_form = task.ask_form, result = task.result, waits_for = task.waits_for,
        waits_topic = task.waits_topic
    WHERE t.tenant = task.tenant AND t.id = task.id;
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, number, from_state, to_state,
        worker, attempt, run_after, note, message_id)
    VALUES (
        task.tenant, task.id, task.version + 1, 'transition', in_now, in_actor, task.fence,
        task.transitions + 1, task.state, in_to, task.worker, left_attempts, in_run_after,
        in_note, in_status_id);
    IF task.has_push OR task.followed_until > in_now THEN
        PERFORM holdfast.tell_of_task(task.tenant, task.id, task.has_push, task.followed_until,
                                      in_now, in_said, task.version + 1);
    END IF;
END
$$;

-- Adds what a client asked of a task that could not be done at once.
CREATE OR REPLACE FUNCTION holdfast.request_of_task(
    task holdfast.tasks, in_request text, in_now timestamptz, in_note text
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE holdfast.tasks t SET
        version = task.version + 1, cancel_requested = task.cancel_requested,
        pause_requested = task.pause_requested
    WHERE t.tenant = task.tenant AND t.id = task.id;
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence, request, note)
    VALUES (task.tenant, task.id, task.version + 1, 'request', in_now, 'client', task.fence,
            in_request, in_note);
    PERFORM holdfast.tell_of_task(
        task.tenant, task.id, false, task.followed_until, in_now, NULL);
END
$$;

-- Tasks are read within so many bytes. The length of a text is known without reading the text, so that
-- what does not fit stays where it is.

-- How many bytes the artifacts of a task take, as they are now.
CREATE OR REPLACE FUNCTION holdfast.task_artifact_bytes(in_tenant text, in_task_id text) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(sum(octet_length(e.body) + octet_length(e.metadata)), 0)::bigint
    FROM holdfast.task_artifacts a
    JOIN holdfast.task_events e
        ON e.tenant = in_tenant AND e.task_id = a.task_id AND e.kind = 'artifact'
        AND e.artifact_id = a.id AND e.seq >= a.anew
    WHERE a.tenant = in_tenant AND a.task_id = in_task_id
$$;

-- How many bytes of a page a task takes, with its last messages and, if wanted, its artifacts.
CREATE OR REPLACE FUNCTION holdfast.task_page_bytes(
    in_tenant text, in_task_id text, in_last bigint, in_artifacts boolean
) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT octet_length(t.metadata) + coalesce(octet_length(t.result), 0)
        + coalesce((
            SELECT octet_length(e.body) FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = t.id AND e.seq = t.status_seq LIMIT 1), 0)
        + coalesce((
            SELECT sum(octet_length(l.body)) FROM (
                SELECT e.body FROM holdfast.task_events e
                WHERE e.tenant = in_tenant AND e.task_id = t.id AND e.kind = 'message'
                ORDER BY e.seq DESC LIMIT in_last
            ) l), 0)::bigint
        + CASE WHEN in_artifacts THEN holdfast.task_artifact_bytes(t.tenant, t.id) ELSE 0 END
    FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = in_task_id
$$;

-- How many bytes the artifacts of a task take, or of none, and whether that is too many.
CREATE OR REPLACE FUNCTION holdfast.task_artifacts_within(
    in_tenant text, in_task_id text, in_bytes bigint
) RETURNS TABLE (bytes bigint, dropped boolean)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT z.bytes, z.bytes > in_bytes
    FROM (
        SELECT CASE WHEN in_task_id IS NOT NULL
                    THEN holdfast.task_artifact_bytes(in_tenant, in_task_id) ELSE 0 END AS bytes
        OFFSET 0
    ) z
$$;

-- The first message of a task, or of none.
CREATE OR REPLACE FUNCTION holdfast.first_task_message(in_tenant text, in_task_id text)
RETURNS TABLE (first_id text, first_at timestamptz, first_seq bigint, first_body text)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT e.message_id, e.written_at, e.seq, e.body
    FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
    ORDER BY e.seq LIMIT 1
$$;

-- The last messages of a task that fit, as task_messages has them, and whether some do not; the
-- newest always fits.
CREATE OR REPLACE FUNCTION holdfast.task_messages_within(
    in_tenant text, in_task_id text, in_last bigint, in_bytes bigint
) RETURNS TABLE (message_ids text[], message_times timestamptz[], message_seqs bigint[],
                 message_bodies text[], messages_cut boolean)
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(m.message_id ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.written_at ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.seq ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.body ORDER BY m.seq) FILTER (WHERE m.fits),
           coalesce(bool_or(NOT m.fits), false)
    FROM (
        SELECT l.*, sum(octet_length(l.body)) OVER newer <= in_bytes
                   OR row_number() OVER newer = 1 AS fits
        FROM (
            SELECT e.message_id, e.written_at, e.seq, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
            ORDER BY e.seq DESC LIMIT in_last
        ) l
        WINDOW newer AS (ORDER BY l.seq DESC)
    ) m
$$;
