-- The database's clock may go back. Recovery notices it, and lets nothing wait for the old time.

-- How long the lease is; NULL for one that was taken before, until its next heartbeat.
ALTER TABLE holdfast.tasks ADD COLUMN lease_seconds double precision;

-- Takes up to so many due tasks, those that have waited longest first. Serially it takes the first
-- of each context that has nothing at work, and holds the context meanwhile, so that two claims
-- never take one task each.
CREATE OR REPLACE FUNCTION holdfast.claim_tasks(
    in_tenant text, in_worker text, in_agents text[], in_limit bigint,
    in_lease_seconds double precision, in_serial boolean, in_history bigint
) RETURNS SETOF holdfast.claimed_task
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
    chosen text[];
    awaited boolean;
BEGIN
    PERFORM holdfast.check_task_edge('', 'submitted', 'working', 'worker');
    IF in_serial THEN
        -- Sub-selects with a limit stay look-ups in an index.
        SELECT array_agg(c.id), bool_or(c.awaited) INTO chosen, awaited FROM (
            SELECT t.id, t.has_push OR t.followed_until > v_now AS awaited
            FROM holdfast.tasks t
            JOIN holdfast.task_contexts x
                ON x.tenant = t.tenant AND x.owner = t.owner AND x.id = t.context_id
            WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.due_at <= v_now
                AND (in_agents IS NULL OR t.agent = ANY (in_agents))
                AND (
                    SELECT true FROM holdfast.tasks w
                    WHERE w.tenant = t.tenant AND w.context_key = t.context_key
                        AND w.state = 'working'
                    LIMIT 1
                ) IS NULL
                AND t.id = (
                    SELECT f.id FROM holdfast.tasks f
                    WHERE f.tenant = t.tenant AND f.context_key = t.context_key
                        AND f.state = 'submitted' AND f.due_at <= v_now
                        AND (in_agents IS NULL OR f.agent = ANY (in_agents))
                    ORDER BY f.due_at, f.id LIMIT 1
                )
            ORDER BY t.due_at, t.id LIMIT in_limit
            FOR NO KEY UPDATE OF t, x SKIP LOCKED
        ) c;
    ELSE
        SELECT array_agg(c.id), bool_or(c.awaited) INTO chosen, awaited FROM (
            SELECT t.id, t.has_push OR t.followed_until > v_now AS awaited
            FROM holdfast.tasks t
            WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.due_at <= v_now
                AND (in_agents IS NULL OR t.agent = ANY (in_agents))
            ORDER BY t.due_at, t.id LIMIT in_limit
            FOR NO KEY UPDATE SKIP LOCKED
        ) c;
    END IF;
    IF chosen IS NULL THEN
        RETURN;
    END IF;
    -- A context may have been taken between the look and the lock: this looks again.
    RETURN QUERY
    WITH taken AS (
        UPDATE holdfast.tasks t SET
            state = 'working', updated_at = v_now, note = '""', status_seq = NULL,
            version = t.version + 1, transitions = t.transitions + 1,
            fence = t.fence + 1, attempts = t.attempts + 1, worker = in_worker,
            lane = CASE WHEN in_serial THEN '' ELSE t.id END,
            lease_expires_at = v_now + make_interval(secs => in_lease_seconds),
            lease_seconds = in_lease_seconds,
            run_after = NULL
        WHERE t.tenant = in_tenant AND t.id = ANY (chosen)
            AND (NOT in_serial OR (
                SELECT true FROM holdfast.tasks w
                WHERE w.tenant = t.tenant AND w.context_key = t.context_key
                    AND w.state = 'working'
                LIMIT 1
            ) IS NULL)
        RETURNING t.*
    ), logged AS (
        INSERT INTO holdfast.task_events (
            tenant, task_id, seq, kind, at, actor, fence, number, from_state, to_state,
            worker, attempt, note, message_id)
        SELECT t.tenant, t.id, t.version, 'transition', v_now, 'worker', t.fence,
               t.transitions, 'submitted', 'working', in_worker, t.attempts, '""', ''
        FROM taken t
    )
    SELECT t.id, t.context_id, t.agent, t.state, t.created_at, t.updated_at, t.owner, t.note,
           t.metadata, t.version, t.fence, t.attempts, t.max_attempts, t.worker,
           t.lease_expires_at, t.run_after, t.cancel_requested, t.pause_requested, t.submit_key,
           t.retry_of, m.message_ids, m.message_times, m.message_seqs, m.message_bodies
    FROM taken t
    CROSS JOIN LATERAL holdfast.task_messages(t.tenant, t.id, in_history) m
    ORDER BY t.due_at, t.id;
    IF awaited THEN
        PERFORM holdfast.tell_of_task(
            t.tenant, t.id, t.has_push, t.followed_until, v_now, t.version)
        FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.id = ANY (chosen) AND t.updated_at = v_now
            AND t.worker = in_worker;
    END IF;
END
$$;

-- After the clock went back: no lease lasts longer than it was taken for, and no task at work is due
-- in the future. A worker that lives extends its lease as before; it loses nothing by this, since its
-- lease is counted from a later moment than its last heartbeat.
CREATE FUNCTION holdfast.correct_leases(in_tenant text) RETURNS void
LANGUAGE sql
AS $$
    UPDATE holdfast.tasks t SET
        lease_expires_at = least(
            t.lease_expires_at, holdfast.now() + make_interval(secs => t.lease_seconds)),
        due_at = least(t.due_at, holdfast.now())
    WHERE t.tenant = in_tenant AND t.id IN (
        SELECT w.id FROM holdfast.tasks w
        WHERE w.tenant = in_tenant AND w.state = 'working' AND (
            w.due_at > holdfast.now() + interval '1 second'
            OR w.lease_expires_at
                > holdfast.now() + make_interval(secs => w.lease_seconds) + interval '1 second')
        FOR NO KEY UPDATE SKIP LOCKED
    ) AND t.state = 'working'
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
