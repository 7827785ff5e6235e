-- version: 3
-- How tasks come into the queue.

-- Queues a task with its first message, in one go; the same submit key, or the same id after an
-- answer was lost, finds the task that is there.
CREATE OR REPLACE FUNCTION holdfast.queue_task(
    in_tenant text, in_id text, in_owner text, in_context_id text, in_new_context_id text,
    in_agent text, in_metadata text, in_max_attempts bigint, in_submit_key text, in_digest text,
    in_retry_of text, in_run_after timestamptz, in_run_after_seconds double precision,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_push_ids text[], in_push_urls text[], in_push_tokens text[], in_push_auths text[],
    in_priority bigint, in_limit_key text, in_now timestamptz
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := in_run_after;
    v_now timestamptz := coalesce(in_now, holdfast.now());
    made boolean := false;
BEGIN
    IF in_run_after_seconds IS NOT NULL THEN
        moment := holdfast.task_moment(in_run_after, in_run_after_seconds, v_now);
    END IF;
    -- What most tasks need, in one statement: a context of their own, and nothing to look up.
    IF in_context_id = '' AND in_submit_key = '' AND in_retry_of = '' AND in_push_ids = '{}' THEN
        WITH context AS (
            INSERT INTO holdfast.task_contexts (tenant, owner, id, created_at)
            SELECT in_tenant, in_owner, in_new_context_id, v_now
            FROM holdfast.task_edges e
            WHERE e.from_state IS NULL AND e.to_state = 'submitted' AND e.actor = 'client'
            ON CONFLICT DO NOTHING RETURNING key
        ), task AS (
            INSERT INTO holdfast.tasks (
                tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
                submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
                transitions, run_after, due_at, priority, limit_key)
            SELECT
                in_tenant, in_id, in_owner, in_new_context_id, c.key, in_agent, in_metadata,
                in_max_attempts, '', in_digest, '', v_now, 'submitted', v_now, 2,
                1, moment, greatest(moment, v_now), in_priority, in_limit_key
            FROM context c
            RETURNING context_key
        )
        INSERT INTO holdfast.task_events (
            tenant, task_id, seq, kind, at, actor, fence,
            number, to_state, worker, attempt, run_after, note,
            message_id, written_at, context_key, stored, digest, body)
        SELECT in_tenant, in_id, e.seq, e.kind, v_now, 'client', 0,
               e.number, e.to_state, e.worker, e.attempt, e.run_after, e.note,
               e.message_id, e.written_at, e.context_key, e.stored, e.digest, e.body
        FROM task t CROSS JOIN LATERAL (VALUES
            (1, 'transition', 1, 'submitted', '', 0, moment, '""',
             '', NULL, NULL, NULL, NULL, NULL),
            (2, 'message', NULL, NULL, NULL, NULL, NULL, NULL,
             in_message_id, in_message_at, t.context_key,
             nextval('holdfast.task_messages_stored'), in_message_digest, in_message_body)
        ) AS e (seq, kind, number, to_state, worker, attempt, run_after, note,
                message_id, written_at, context_key, stored, digest, body);
        made := FOUND;
    END IF;
    IF made THEN
        RETURN QUERY SELECT * FROM holdfast.linked_task_records r
        WHERE r.tenant = in_tenant AND r.id = in_id;
    ELSE
        RETURN QUERY SELECT * FROM holdfast.queue_task_once(
            in_tenant, in_id, in_owner, in_context_id, in_new_context_id, in_agent, in_metadata,
            in_max_attempts, in_submit_key, in_digest, in_retry_of, in_run_after,
            in_run_after_seconds, in_message_id, in_message_at, in_message_body,
            in_message_digest, in_push_ids, in_push_urls, in_push_tokens, in_push_auths,
            in_priority, in_limit_key, in_now);
    END IF;
END
$$;

-- The same for a task that may be there, continues a context, repeats a task, or has push configs.
CREATE OR REPLACE FUNCTION holdfast.queue_task_once(
    in_tenant text, in_id text, in_owner text, in_context_id text, in_new_context_id text,
    in_agent text, in_metadata text, in_max_attempts bigint, in_submit_key text, in_digest text,
    in_retry_of text, in_run_after timestamptz, in_run_after_seconds double precision,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_push_ids text[], in_push_urls text[], in_push_tokens text[], in_push_auths text[],
    in_priority bigint, in_limit_key text, in_now timestamptz
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := holdfast.task_moment(
        in_run_after, in_run_after_seconds, holdfast.now());
    context_name text := nullif(in_context_id, '');
    context record;
    task holdfast.tasks;
    before holdfast.tasks;
    known text := holdfast.find_submitted(in_tenant, in_id, in_owner, in_submit_key, in_digest);
    v_now timestamptz;
BEGIN
    IF known IS NULL AND in_retry_of <> '' THEN
        SELECT * INTO before FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.id = in_retry_of;
        IF NOT FOUND OR before.owner <> in_owner THEN
            PERFORM holdfast.fail('HF002', 'there is no such task',
                                  jsonb_build_object('kind', 'task', 'key', in_retry_of));
        END IF;
        PERFORM holdfast.refuse_adopted(before);
        IF before.state NOT IN ('completed', 'failed', 'canceled', 'rejected') THEN
            PERFORM holdfast.fail_task_edge(before.id, before.state, 'submitted');
        END IF;
        context_name := coalesce(context_name, before.context_id);
    END IF;
    context_name := coalesce(context_name, in_new_context_id);
    PERFORM holdfast.check_task_edge(in_id, NULL, 'submitted', 'client');
    WHILE known IS NULL LOOP
        v_now := coalesce(in_now, holdfast.now());
        moment := holdfast.task_moment(in_run_after, in_run_after_seconds, v_now);
        context := holdfast.use_task_context(in_tenant, in_owner, context_name, v_now);
        INSERT INTO holdfast.tasks (
            tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
            submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
            transitions, run_after, due_at, has_push, priority, limit_key)
        VALUES (
            in_tenant, in_id, in_owner, context_name, context.key, in_agent, in_metadata,
            in_max_attempts, in_submit_key, in_digest, in_retry_of, v_now, 'submitted', v_now, 2,
            1, moment, greatest(moment, v_now), in_push_ids <> '{}', in_priority,
            in_limit_key)
        ON CONFLICT DO NOTHING RETURNING * INTO task;
        EXIT WHEN FOUND;
        -- Somebody submitted under this key at the same moment; theirs is visible now.
        IF context.made THEN
            DELETE FROM holdfast.task_contexts c
            WHERE c.tenant = in_tenant AND c.owner = in_owner AND c.id = context_name;
        END IF;
        known := holdfast.find_submitted(in_tenant, in_id, in_owner, in_submit_key, in_digest);
    END LOOP;
    IF known IS NULL THEN
        INSERT INTO holdfast.task_events (
            tenant, task_id, seq, kind, at, actor, fence, number, to_state, worker, attempt,
            run_after, note, message_id)
        VALUES (in_tenant, in_id, 1, 'transition', v_now, 'client', 0, 1, 'submitted', '', 0,
                moment, '""', '');
        PERFORM holdfast.say_in_task(
            in_tenant, in_id, 2, task.context_key, 0, 'client', v_now,
            in_message_id, in_message_at, in_message_body, in_message_digest);
        IF task.has_push THEN
            INSERT INTO holdfast.push_configs (tenant, task_id, id, url, token, authentication)
            SELECT in_tenant, in_id, p.id, p.url, p.token, p.auth
            FROM unnest(in_push_ids, in_push_urls, in_push_tokens, in_push_auths) WITH ORDINALITY
                AS p (id, url, token, auth, place)
            ORDER BY p.place;
            PERFORM holdfast.tell_of_task(in_tenant, in_id, true, NULL, v_now, 1, 2);
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM holdfast.linked_task_records r
    WHERE r.tenant = in_tenant AND r.id = coalesce(known, in_id);
END
$$;

-- Queues several tasks, all or none, each as queue_task does; they are due in the order given. The
-- same call again, after its answer was lost, finds what is there by the ids.
-- Contexts and submit keys are taken in their order, so that two such calls cannot wait for each
-- other.
CREATE OR REPLACE FUNCTION holdfast.queue_tasks(
    in_tenant text, in_owner text, in_ids text[], in_context_ids text[],
    in_new_context_ids text[], in_agents text[], in_metadata text[], in_max_attempts bigint[],
    in_submit_keys text[], in_digests text[], in_run_after timestamptz[],
    in_run_after_seconds double precision[], in_message_ids text[], in_message_ats timestamptz[],
    in_message_bodies text[], in_message_digests text[], in_priorities bigint[],
    in_limit_keys text[]
) RETURNS SETOF holdfast.linked_task_records
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz;
    place bigint;
    queued text[] := in_ids;
BEGIN
    PERFORM holdfast.use_task_context(in_tenant, in_owner, c.id, holdfast.now())
    FROM (SELECT DISTINCT id FROM unnest(in_context_ids) id WHERE id <> '' ORDER BY id) c;
    v_now := holdfast.now();
    PERFORM holdfast.check_task_edge('', NULL, 'submitted', 'client');
    -- Those with a context of their own and nothing to look up, all at once.
    WITH given AS MATERIALIZED (
        SELECT g.*, nextval('holdfast.task_contexts_key_seq') AS context_key, CASE
            WHEN g.seconds IS NULL THEN g.run_after
            ELSE holdfast.task_moment(g.run_after, g.seconds, v_now) END AS moment
        FROM unnest(
            in_ids, in_context_ids, in_new_context_ids, in_agents, in_metadata, in_max_attempts,
            in_submit_keys, in_run_after, in_run_after_seconds, in_message_ids, in_message_ats,
            in_message_bodies, in_message_digests, in_priorities, in_limit_keys
        ) AS g (id, context_id, new_context_id, agent, metadata, max_attempts, submit_key,
                run_after, seconds, message_id, message_at, body, digest, priority, limit_key)
        WHERE g.context_id = '' AND g.submit_key = ''
    ), contexts AS (
        INSERT INTO holdfast.task_contexts (tenant, owner, id, key, created_at)
        OVERRIDING SYSTEM VALUE
        SELECT in_tenant, in_owner, g.new_context_id, g.context_key, v_now FROM given g
        ON CONFLICT DO NOTHING
    ), tasks AS (
        INSERT INTO holdfast.tasks (
            tenant, id, owner, context_id, context_key, agent, metadata, max_attempts,
            submit_key, submit_digest, retry_of, created_at, state, updated_at, version,
            transitions, run_after, due_at, priority, limit_key)
        SELECT
            in_tenant, g.id, in_owner, g.new_context_id, g.context_key, g.agent, g.metadata,
            g.max_attempts, '', '', '', v_now, 'submitted', v_now, 2,
            1, g.moment, greatest(g.moment, v_now), g.priority, g.limit_key
        FROM given g
        ON CONFLICT DO NOTHING
    ), begun AS (
        INSERT INTO holdfast.task_events (
            tenant, task_id, seq, kind, at, actor, fence, number, to_state, worker, attempt,
            run_after, note, message_id)
        SELECT in_tenant, g.id, 1, 'transition', v_now, 'client', 0, 1, 'submitted', '', 0,
               g.moment, '""', ''
        FROM given g
        ON CONFLICT DO NOTHING
    )
    INSERT INTO holdfast.task_events (
        tenant, task_id, seq, kind, at, actor, fence,
        message_id, written_at, context_key, stored, digest, body)
    SELECT in_tenant, g.id, 2, 'message', v_now, 'client', 0,
           g.message_id, g.message_at, g.context_key, nextval('holdfast.task_messages_stored'),
           g.digest, g.body
    FROM given g
    ON CONFLICT DO NOTHING;
    FOR place IN
        SELECT k.place FROM unnest(in_submit_keys, in_context_ids) WITH ORDINALITY
            AS k (key, context_id, place)
        WHERE k.key <> '' OR k.context_id <> ''
        ORDER BY k.key, k.place
    LOOP
        queued[place] := (SELECT r.id FROM holdfast.queue_task(
            in_tenant, in_ids[place], in_owner, in_context_ids[place], in_new_context_ids[place],
            in_agents[place], in_metadata[place], in_max_attempts[place], in_submit_keys[place],
            in_digests[place], '', in_run_after[place], in_run_after_seconds[place],
            in_message_ids[place], in_message_ats[place], in_message_bodies[place],
            in_message_digests[place], '{}', '{}', '{}', '{}', in_priorities[place],
            in_limit_keys[place], v_now) r);
    END LOOP;
    -- One look-up for each: the planner, who knows nothing of the tenant, would rather read all of it.
    /* alone: */
    RETURN QUERY SELECT r.* FROM unnest(queued) WITH ORDINALITY AS q (id, place)
    CROSS JOIN LATERAL (
        SELECT l.* FROM holdfast.linked_task_records l
        WHERE l.tenant = in_tenant AND l.id = q.id OFFSET 0
    ) r
    ORDER BY q.place;
    /* end */
    /* distributed: FOR place IN 1 .. cardinality(queued) LOOP
        RETURN QUERY SELECT * FROM holdfast.linked_task_records l
        WHERE l.tenant = in_tenant AND l.id = queued[place];
    END LOOP; */
END
$$;
