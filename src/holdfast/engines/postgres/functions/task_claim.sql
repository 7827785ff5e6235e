-- version: 3
-- How workers take tasks out of the queue.

-- Takes up to so many due tasks: the highest priority first, then those that have waited longest.
-- Serially it takes the first of each context that has nothing at work, and holds the context
-- meanwhile, so that two claims never take one task each.
-- A task that began with a version of its handler is taken by those who have it (in_versions: a list
-- for each agent, the one for new tasks first).
CREATE OR REPLACE FUNCTION holdfast.claim_due_tasks(
    in_tenant text, in_worker text, in_agents text[], in_limit bigint,
    in_lease_seconds double precision, in_serial boolean, in_history bigint, in_limits jsonb,
    in_versions jsonb, in_app_version text
) RETURNS SETOF holdfast.claimed_version
LANGUAGE plpgsql
-- It walks the queue in order and stops at the limit; the planner, who cannot know how soon that
-- is, would rather sort the whole queue.
SET plan_cache_mode = force_generic_plan
SET enable_sort = off
SET enable_bitmapscan = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    chosen tid[];
    contexts bigint[];
    busy bigint[];
    awaited boolean;
BEGIN
    PERFORM holdfast.check_task_edge('', 'submitted', 'working', 'worker');
    IF in_limits IS NOT NULL THEN
        PERFORM holdfast.lock_limits(in_tenant);
        -- What others took meanwhile began before now.
        v_now := holdfast.now();
    END IF;
    IF in_limits IS NOT NULL OR EXISTS (
        SELECT FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.priority > 0
    ) THEN
        SELECT array_agg(c.place), array_agg(c.context_key), bool_or(c.awaited)
        INTO chosen, contexts, awaited
        FROM holdfast.choose_tasks(
            in_tenant, in_agents, in_limit, in_serial, v_now, in_limits, in_versions) c;
    ELSE
        SELECT array_agg(c.place), array_agg(c.context_key), bool_or(c.awaited)
        INTO chosen, contexts, awaited
        FROM holdfast.due_tasks(
            in_tenant, in_agents, in_limit, in_serial, v_now, 0::smallint, NULL, NULL, NULL, NULL,
            in_versions) c;
    END IF;
    IF chosen IS NULL THEN
        RETURN;
    END IF;
    IF in_serial THEN
        -- A context may have been taken between the look and the lock: this looks again.
        SELECT array_agg(w.context_key) INTO busy FROM holdfast.tasks w
        WHERE w.tenant = in_tenant AND w.context_key = ANY (contexts) AND w.state = 'working'
            AND NOT w.adopted;
    END IF;
    RETURN QUERY
    WITH taken AS (
        SELECT * FROM holdfast.take_places(
            in_tenant, chosen, busy, in_worker, v_now, in_lease_seconds, in_serial, in_versions,
            in_app_version)
    ), logged AS (
        INSERT INTO holdfast.task_events (
            tenant, task_id, seq, kind, at, actor, fence, number, from_state, to_state,
            worker, attempt, note, message_id, app_version)
        SELECT t.tenant, t.id, t.version, 'transition', v_now, 'worker', t.fence,
               t.transitions, 'submitted', 'working', in_worker, t.attempts, '""', '',
               nullif(in_app_version, '')
        FROM taken t
    )
    SELECT t.id, t.context_id, t.agent, t.state, t.created_at, t.updated_at, t.owner, t.note,
           t.metadata, t.version, t.fence, t.attempts, t.max_attempts, t.worker,
           t.lease_expires_at, t.run_after, t.cancel_requested, t.pause_requested, t.submit_key,
           t.retry_of, m.message_ids, m.message_times, m.message_seqs, m.message_bodies,
           t.parent_id, t.priority::bigint, t.limit_key, t.handler_version
    FROM taken t
    LEFT JOIN LATERAL (
        -- A task that was never claimed has its first message and no other.
        SELECT ARRAY[e.message_id] AS message_ids, ARRAY[e.written_at] AS message_times,
               ARRAY[e.seq] AS message_seqs, ARRAY[e.body] AS message_bodies
        FROM holdfast.task_events e
        WHERE t.version = 3 AND in_history IS DISTINCT FROM 0
            AND e.tenant = t.tenant /* distributed: AND e.tenant = in_tenant */
            AND e.task_id = t.id AND e.seq = 2
        UNION ALL
        SELECT l.* FROM holdfast.task_messages(t.tenant, t.id, in_history) l
        WHERE t.version <> 3
    ) m ON true
    ORDER BY t.priority DESC, t.due_at, t.id;
    IF awaited THEN
        PERFORM holdfast.tell_of_task(
            t.tenant, t.id, t.has_push, t.followed_until, v_now, t.version)
        FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.context_key = ANY (contexts) AND t.state = 'working'
            AND t.updated_at = v_now AND t.worker = in_worker;
    END IF;
END
$$;

-- Takes the rows at some places. They are locked, so they stay where they are; no index fits what is
-- said of them, and the one that fits their policy reads all of a tenant.
CREATE OR REPLACE FUNCTION holdfast.take_places(
    in_tenant text, in_places tid[], in_busy bigint[], in_worker text, in_now timestamptz,
    in_lease_seconds double precision, in_serial boolean, in_versions jsonb, in_app_version text
) RETURNS SETOF holdfast.tasks
LANGUAGE plpgsql
SET enable_indexscan = off
AS $$
BEGIN
    RETURN QUERY
    UPDATE holdfast.tasks t SET
        state = 'working', updated_at = in_now, note = '""', status_seq = NULL,
        version = t.version + 1, transitions = t.transitions + 1,
        fence = t.fence + 1, attempts = t.attempts + 1, worker = in_worker,
        lane = CASE WHEN in_serial THEN '' ELSE t.id END,
        lease_expires_at = in_now + make_interval(secs => in_lease_seconds),
        lease_seconds = in_lease_seconds,
        run_after = NULL, app_version = in_app_version,
        handler_version = CASE WHEN t.handler_version = ''
            THEN coalesce(in_versions -> t.agent ->> 0, '') ELSE t.handler_version END
    WHERE /* distributed: t.tenant = in_tenant AND */ t.ctid = ANY (in_places)
        AND CASE WHEN t.state = 'submitted' THEN t.tenant END = in_tenant
        AND (in_busy IS NULL OR t.context_key <> ALL (in_busy))
    RETURNING t.*;
END
$$;

-- The next due tasks of one priority, their rows locked; serially the first of each context that
-- has nothing at work, with the context locked. Tasks, agents, keys and contexts may be left out.
CREATE OR REPLACE FUNCTION holdfast.due_tasks(
    in_tenant text, in_agents text[], in_limit bigint, in_serial boolean, in_now timestamptz,
    in_priority smallint, in_chosen tid[], in_contexts bigint[], in_full_agents text[],
    in_full_keys text[], in_versions jsonb
) RETURNS TABLE (place tid, context_key bigint, agent text, limit_key text, awaited boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    -- Sub-selects with a limit stay look-ups in an index.
    IF in_serial AND in_priority = 0 THEN
        RETURN QUERY
        SELECT t.ctid, t.context_key, t.agent, t.limit_key,
               t.has_push OR t.followed_until > in_now
        FROM holdfast.tasks t
        JOIN holdfast.task_contexts x
            ON x.tenant = t.tenant /* distributed: AND x.tenant = in_tenant */ AND x.owner = t.owner AND x.id = t.context_id
        WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.due_at <= in_now
            AND t.priority = 0
            AND (in_agents IS NULL OR t.agent = ANY (in_agents))
            AND (t.handler_version = '' OR in_versions -> t.agent ? t.handler_version)
            AND (in_contexts IS NULL OR t.context_key <> ALL (in_contexts))
            AND (in_full_agents IS NULL OR t.agent <> ALL (in_full_agents))
            AND (in_full_keys IS NULL OR t.agent || E'\n' || t.limit_key <> ALL (in_full_keys))
            AND (
                SELECT true FROM holdfast.tasks w
                WHERE w.tenant = t.tenant /* distributed: AND w.tenant = in_tenant */
                    AND w.context_key = t.context_key
                    AND w.state = 'working' AND NOT w.adopted
                LIMIT 1
            ) IS NULL
            AND t.id = (
                SELECT f.id FROM holdfast.tasks f
                WHERE f.tenant = t.tenant /* distributed: AND f.tenant = in_tenant */
                    AND f.context_key = t.context_key
                    AND f.state = 'submitted' AND f.due_at <= in_now AND f.priority = 0
                    AND (in_agents IS NULL OR f.agent = ANY (in_agents))
                    AND (f.handler_version = '' OR in_versions -> f.agent ? f.handler_version)
                    AND (in_full_agents IS NULL OR f.agent <> ALL (in_full_agents))
                    AND (in_full_keys IS NULL
                        OR f.agent || E'\n' || f.limit_key <> ALL (in_full_keys))
                ORDER BY f.due_at, f.id LIMIT 1
            )
        ORDER BY t.due_at, t.id LIMIT in_limit
        FOR NO KEY UPDATE OF t, x SKIP LOCKED;
    ELSIF in_serial THEN
        RETURN QUERY
        SELECT t.ctid, t.context_key, t.agent, t.limit_key,
               t.has_push OR t.followed_until > in_now
        FROM holdfast.tasks t
        JOIN holdfast.task_contexts x
            ON x.tenant = t.tenant /* distributed: AND x.tenant = in_tenant */ AND x.owner = t.owner AND x.id = t.context_id
        WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.due_at <= in_now
            AND t.priority = in_priority AND t.priority > 0
            AND (in_agents IS NULL OR t.agent = ANY (in_agents))
            AND (t.handler_version = '' OR in_versions -> t.agent ? t.handler_version)
            AND (in_contexts IS NULL OR t.context_key <> ALL (in_contexts))
            AND (in_full_agents IS NULL OR t.agent <> ALL (in_full_agents))
            AND (in_full_keys IS NULL OR t.agent || E'\n' || t.limit_key <> ALL (in_full_keys))
            AND (
                SELECT true FROM holdfast.tasks w
                WHERE w.tenant = t.tenant /* distributed: AND w.tenant = in_tenant */
                    AND w.context_key = t.context_key
                    AND w.state = 'working' AND NOT w.adopted
                LIMIT 1
            ) IS NULL
            AND t.id = (
                SELECT f.id FROM holdfast.tasks f
                WHERE f.tenant = t.tenant /* distributed: AND f.tenant = in_tenant */
                    AND f.context_key = t.context_key
                    AND f.state = 'submitted' AND f.due_at <= in_now
                    AND f.priority = in_priority
                    AND (in_agents IS NULL OR f.agent = ANY (in_agents))
                    AND (f.handler_version = '' OR in_versions -> f.agent ? f.handler_version)
                    AND (in_full_agents IS NULL OR f.agent <> ALL (in_full_agents))
                    AND (in_full_keys IS NULL
                        OR f.agent || E'\n' || f.limit_key <> ALL (in_full_keys))
                ORDER BY f.due_at, f.id LIMIT 1
            )
        ORDER BY t.due_at, t.id LIMIT in_limit
        FOR NO KEY UPDATE OF t, x SKIP LOCKED;
    ELSIF in_priority = 0 THEN
        RETURN QUERY
        SELECT t.ctid, t.context_key, t.agent, t.limit_key,
               t.has_push OR t.followed_until > in_now
        FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.due_at <= in_now
            AND t.priority = 0
            AND (in_agents IS NULL OR t.agent = ANY (in_agents))
            AND (t.handler_version = '' OR in_versions -> t.agent ? t.handler_version)
            AND (in_chosen IS NULL OR t.ctid <> ALL (in_chosen))
            AND (in_full_agents IS NULL OR t.agent <> ALL (in_full_agents))
            AND (in_full_keys IS NULL OR t.agent || E'\n' || t.limit_key <> ALL (in_full_keys))
        ORDER BY t.due_at, t.id LIMIT in_limit
        FOR NO KEY UPDATE SKIP LOCKED;
    ELSE
        RETURN QUERY
        SELECT t.ctid, t.context_key, t.agent, t.limit_key,
               t.has_push OR t.followed_until > in_now
        FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.due_at <= in_now
            AND t.priority = in_priority AND t.priority > 0
            AND (in_agents IS NULL OR t.agent = ANY (in_agents))
            AND (t.handler_version = '' OR in_versions -> t.agent ? t.handler_version)
            AND (in_chosen IS NULL OR t.ctid <> ALL (in_chosen))
            AND (in_full_agents IS NULL OR t.agent <> ALL (in_full_agents))
            AND (in_full_keys IS NULL OR t.agent || E'\n' || t.limit_key <> ALL (in_full_keys))
        ORDER BY t.due_at, t.id LIMIT in_limit
        FOR NO KEY UPDATE SKIP LOCKED;
    END IF;
END
$$;
