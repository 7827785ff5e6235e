-- version: 5
-- What workers do with tasks.

-- Where a task goes when its work ends like this, and the note of it.
CREATE OR REPLACE FUNCTION holdfast.settle_task(
    task holdfast.tasks, in_wanted text, in_note text, in_event text,
    OUT reached text, OUT why text
)
LANGUAGE plpgsql
AS $$
BEGIN
    reached := in_wanted;
    why := in_note;
    IF task.cancel_requested AND in_wanted <> 'canceled' THEN
        reached := 'canceled';
        why := holdfast.task_note('a cancel was requested before ' || in_event, in_note);
    ELSIF in_wanted = 'submitted' AND task.attempts >= task.max_attempts THEN
        reached := 'failed';
        why := holdfast.task_note(
            format('gave up after %s attempts without progress', task.attempts), in_note);
    ELSIF in_wanted = 'submitted' AND task.pause_requested THEN
        reached := 'paused';
    END IF;
END
$$;

-- Ends or suspends the work on a task, with its result, the message and the question that go with
-- it, or what it waits for. What came already is not waited for.
CREATE OR REPLACE FUNCTION holdfast.leave_task(
    in_tenant text, in_id text, in_fence bigint, in_to text, in_note text,
    in_run_after timestamptz, in_run_after_seconds double precision, in_progress boolean,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_ask_kind text, in_ask_name text, in_ask_occurrence bigint, in_ask_form text,
    in_result text, in_children text[], in_topic text
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := holdfast.task_moment(
        in_run_after, in_run_after_seconds, holdfast.now());
    -- First the children, then the task: in this order all locks are taken.
    live_children bigint := holdfast.await_children(in_tenant, in_id, in_children);
    task holdfast.tasks := holdfast.hold_task(in_tenant, in_id, in_fence);
    v_now timestamptz := holdfast.now();
    said bigint;
    fresh boolean := false;
    settled record;
BEGIN
    IF in_run_after_seconds IS NOT NULL THEN
        moment := holdfast.task_moment(in_run_after, in_run_after_seconds, v_now);
    END IF;
    IF in_progress THEN
        task.attempts := 0;
    END IF;
    settled := holdfast.settle_task(task, in_to, in_note, 'the worker reported ' || in_to);
    -- Where it goes is checked as it moves; what was asked for must be legal as well.
    IF settled.reached <> in_to OR in_message_id IS NOT NULL OR in_ask_name IS NOT NULL THEN
        PERFORM holdfast.check_task_edge(task.id, task.state, in_to, 'worker');
    END IF;
    IF in_ask_name IS NOT NULL AND EXISTS (
        SELECT FROM holdfast.task_events e
        WHERE e.tenant = in_tenant AND e.kind = 'step' AND e.step_key =
            holdfast.task_step_key(in_id, in_ask_kind, in_ask_name, in_ask_occurrence)
    ) THEN
        PERFORM holdfast.fail('HF001', format('%s was answered: its answer is a step', in_ask_name),
                              jsonb_build_object('kind', 'step', 'key', in_ask_name));
    END IF;
    IF in_message_id IS NOT NULL THEN
        said := holdfast.say_in_task(
            in_tenant, in_id, task.version + 1, task.context_key, task.fence, 'worker', v_now,
            in_message_id, in_message_at, in_message_body, in_message_digest);
        fresh := said > task.version;
        task.version := greatest(task.version, said);
    END IF;
    IF settled.reached = in_to THEN
        task.ask_kind := in_ask_kind;
        task.ask_name := in_ask_name;
        task.ask_occurrence := in_ask_occurrence;
        task.ask_form := in_ask_form;
        task.result := in_result;
    END IF;
    task.waits_for := live_children;
    task.waits_topic := CASE WHEN NOT holdfast.has_message(in_tenant, in_id, in_topic)
                             THEN in_topic END;
    IF in_topic IS NOT NULL AND task.waits_topic IS NULL THEN
        moment := NULL;
    END IF;
    PERFORM holdfast.move_task(
        task, settled.reached, 'worker', v_now, settled.why,
        CASE WHEN settled.reached IN ('submitted', 'paused') THEN moment END,
        CASE WHEN fresh THEN said END, said, coalesce(in_message_id, ''));
    RETURN QUERY SELECT * FROM holdfast.linked_task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Completes tasks, each under its fence, with its result and its last message or NULL: the ids of those whose
-- lease held, and where they went. A row that somebody else holds by now does not match and is not
-- locked, so that two such calls never wait for each other. A task with a message is left alone if a
-- cancel was requested or the message is there already: leave_task ends it.
CREATE OR REPLACE FUNCTION holdfast.complete_tasks_with(
    in_tenant text, in_ids text[], in_fences bigint[], in_workers text[], in_results text[],
    in_message_ids text[], in_message_times timestamptz[], in_message_bodies text[],
    in_message_digests text[]
) RETURNS TABLE (task_id text, reached text)
LANGUAGE plpgsql
-- The planner takes the arrays for short and would compare each task with each of them.
SET plan_cache_mode = force_generic_plan
SET enable_nestloop = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := holdfast.now();
    done text[];
    parents text[];
    awaited boolean;
    task holdfast.tasks;
    settled record;
BEGIN
    PERFORM holdfast.check_task_edge('', 'working', 'completed', 'worker');
    -- Parents that wait for some of the tasks are changed with them: then tasks are locked in the order
    -- of their ids, and parents after them in the order of theirs.
    IF EXISTS (
        SELECT FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.id = ANY (in_ids) AND t.awaited
    ) THEN
        PERFORM FROM holdfast.tasks t JOIN unnest(in_ids, in_fences) AS g (id, fence) ON g.id = t.id
        WHERE t.tenant = in_tenant AND t.id = ANY (in_ids)
            AND CASE WHEN t.state = 'working' THEN t.fence END = g.fence
        ORDER BY t.id FOR NO KEY UPDATE OF t;
        parents := ARRAY(
            SELECT t.parent_id FROM holdfast.tasks t
            WHERE t.tenant = in_tenant AND t.id = ANY (in_ids) AND t.awaited);
        PERFORM FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = ANY (parents)
        ORDER BY t.id FOR NO KEY UPDATE;
    END IF;
    WITH given AS (
        SELECT * FROM unnest(
            in_ids, in_fences, in_workers, in_results, in_message_ids, in_message_times,
            in_message_bodies, in_message_digests
        ) AS g (id, fence, worker, result, message_id, written_at, body, digest)
    ), moved AS (
        UPDATE holdfast.tasks t SET
            state = 'completed', updated_at = v_now, note = '""',
            status_seq = CASE WHEN g.message_id IS NOT NULL THEN t.version + 1 END,
            version = t.version + CASE WHEN g.message_id IS NULL THEN 1 ELSE 2 END,
            transitions = t.transitions + 1, worker = '', lane = '',
            lease_expires_at = NULL, run_after = NULL, pause_requested = false,
            ask_kind = NULL, ask_name = NULL, ask_occurrence = NULL, ask_form = NULL,
            waits_for = 0, waits_topic = NULL, result = g.result
        FROM given g
        -- Found by its id, and not by an index on tasks at work.
        WHERE t.tenant = in_tenant AND t.id = ANY (in_ids) AND t.id = g.id
            AND CASE WHEN t.state = 'working' THEN t.fence END = g.fence
            AND NOT t.cancel_requested
            AND (g.message_id IS NULL OR NOT EXISTS (
                SELECT FROM holdfast.task_events e
                WHERE e.tenant = in_tenant AND e.kind = 'message'
                    AND e.task_id = t.id AND e.message_id = g.message_id))
        RETURNING t.id, t.version, t.transitions, t.fence, t.attempts, t.context_key, g.worker,
                  g.message_id, g.written_at, g.body, g.digest,
                  t.has_push OR t.followed_until > v_now AS awaited
    ), logged AS (
        INSERT INTO holdfast.task_events (
            tenant, task_id, seq, kind, at, actor, fence, number, from_state, to_state,
            worker, attempt, note, message_id, written_at, context_key, stored, digest, body)
        SELECT in_tenant, m.id, e.seq, e.kind, v_now, 'worker', m.fence, e.number, e.from_state,
               e.to_state, e.worker, e.attempt, e.note, e.message_id, e.written_at, e.context_key,
               e.stored, e.digest, e.body
        FROM moved m CROSS JOIN LATERAL (VALUES
            (m.version, 'transition', m.transitions, 'working', 'completed', m.worker, m.attempts,
             '""', coalesce(m.message_id, ''), NULL::timestamptz, NULL::bigint, NULL::bigint, NULL,
             NULL),
            (m.version - 1, 'message', NULL, NULL, NULL, NULL, NULL, NULL,
             m.message_id, m.written_at, m.context_key,
             CASE WHEN m.message_id IS NOT NULL THEN nextval('holdfast.task_messages_stored') END,
             m.digest, m.body)
        ) AS e (seq, kind, number, from_state, to_state, worker, attempt, note,
                message_id, written_at, context_key, stored, digest, body)
        WHERE e.kind = 'transition' OR e.message_id IS NOT NULL
    )
    SELECT array_agg(m.id), bool_or(m.awaited) INTO done, awaited FROM moved m;

    IF awaited THEN
        PERFORM holdfast.tell_of_task(
            t.tenant, t.id, t.has_push, t.followed_until, v_now, t.status_seq, t.version)
        FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = ANY (done);
    END IF;
    RETURN QUERY SELECT d.id, 'completed' FROM unnest(done) AS d (id);

    IF coalesce(cardinality(done), 0) < cardinality(in_ids) THEN
        FOR task IN
            SELECT t.* FROM holdfast.tasks t
            JOIN unnest(in_ids, in_fences, in_message_ids) AS g (id, fence, message_id)
                ON g.id = t.id
            WHERE t.tenant = in_tenant AND t.id = ANY (in_ids) AND g.message_id IS NULL
                AND CASE WHEN t.state = 'working' THEN t.fence END = g.fence
            ORDER BY t.id FOR NO KEY UPDATE OF t
        LOOP
            settled := holdfast.settle_task(
                task, 'completed', '""', 'the worker reported completed');
            task.ask_kind := NULL;
            task.ask_name := NULL;
            task.ask_occurrence := NULL;
            PERFORM holdfast.move_task(task, settled.reached, 'worker', v_now, settled.why);
            RETURN QUERY SELECT task.id, settled.reached;
        END LOOP;
    END IF;
END
$$;

-- Hands a task back unfinished, without counting an attempt.
CREATE OR REPLACE FUNCTION holdfast.release_task(in_tenant text, in_id text, in_fence bigint, in_note text)
RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.hold_task(in_tenant, in_id, in_fence);
    settled record;
BEGIN
    task.attempts := 0;
    settled := holdfast.settle_task(task, 'submitted', in_note, 'the worker released it');
    PERFORM holdfast.move_task(
        task, settled.reached, 'worker', holdfast.now(), settled.why, in_keeps_place => true);
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

-- Takes back tasks whose lease has expired, the longest expired first.
CREATE OR REPLACE FUNCTION holdfast.recover_tasks(in_tenant text, in_limit bigint)
RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    task holdfast.tasks;
    settled record;
BEGIN
    PERFORM holdfast.correct_leases(in_tenant);
    FOR task IN
        SELECT * FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.state = 'working' AND t.lease_expires_at <= v_now
        ORDER BY t.lease_expires_at, t.id LIMIT in_limit
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        settled := holdfast.settle_task(
            task, 'submitted', to_json(format('the lease of %s expired', task.worker))::text,
            'its lease expired');
        PERFORM holdfast.move_task(
            task, settled.reached, 'recovery', holdfast.now(), settled.why,
            in_keeps_place => true);
        RETURN QUERY SELECT * FROM holdfast.task_records r
        WHERE r.tenant = in_tenant AND r.id = task.id;
    END LOOP;
END
$$;

-- After the clock went back: no lease lasts longer than it was taken for, and no task at work is due
-- in the future. A worker that lives extends its lease as before; it loses nothing by this, since its
-- lease is counted from a later moment than its last heartbeat.
CREATE OR REPLACE FUNCTION holdfast.correct_leases(in_tenant text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    task holdfast.tasks;
    until timestamptz;
BEGIN
    FOR task IN
        SELECT * FROM holdfast.tasks w
        WHERE w.tenant = in_tenant AND w.state = 'working' AND NOT w.adopted AND (
            w.due_at > v_now + interval '1 second'
            OR w.lease_expires_at
                > v_now + make_interval(secs => w.lease_seconds) + interval '1 second')
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        until := least(task.lease_expires_at, v_now + make_interval(secs => task.lease_seconds));
        UPDATE holdfast.tasks t SET lease_expires_at = until, due_at = least(task.due_at, v_now)
        WHERE t.tenant = in_tenant AND t.id = task.id AND t.state = 'working';
    END LOOP;
END
$$;
