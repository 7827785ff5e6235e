-- version: 2
-- Priorities, and limits on how many tasks are at work and how many begin in a time.

-- What a limit counts: the tasks of a tenant, of an agent, or of an agent with one key.
CREATE OR REPLACE FUNCTION holdfast.limit_scope(
    in_agent text, in_keyed boolean, task_agent text, task_key text
) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE WHEN in_keyed THEN 'key' || E'\n' || task_agent || E'\n' || task_key
                WHEN in_agent IS NULL THEN 'tenant'
                ELSE 'agent' || E'\n' || task_agent END
$$;

-- Lets claims with limits wait for each other, so that each counts what the one before it took.
CREATE OR REPLACE FUNCTION holdfast.lock_limits(in_tenant text) RETURNS void
LANGUAGE sql
AS $$
    SELECT pg_advisory_xact_lock(hashtextextended(E'holdfast limits\n' || in_tenant, 0))
$$;

-- Chooses due tasks by priority, and within the limits; with limits the caller holds lock_limits.
-- Tasks at work are counted themselves: whatever ends the work on a task, or takes it back from a
-- dead worker, gives its place back.
CREATE OR REPLACE FUNCTION holdfast.choose_tasks(
    in_tenant text, in_agents text[], in_limit bigint, in_serial boolean, in_now timestamptz,
    in_limits jsonb, in_versions jsonb
) RETURNS TABLE (place tid, context_key bigint, awaited boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    at_work jsonb := '{}';
    started jsonb := '{}';
    level smallint := 9;
    room bigint := in_limit;
    chosen tid[] := '{}';
    contexts bigint[] := '{}';
    full_agents text[] := '{}';
    full_keys text[] := '{}';
    candidate record;
    bound record;
    refused boolean;
BEGIN
    IF in_limits IS NOT NULL THEN
        SELECT coalesce(jsonb_object_agg(s.scope, s.count), '{}') INTO at_work FROM (
            SELECT scope, sum(w.count) AS count FROM (
                SELECT t.agent, t.limit_key, count(*) AS count FROM holdfast.tasks t
                WHERE t.tenant = in_tenant AND t.state = 'working' AND NOT t.adopted
                GROUP BY t.agent, t.limit_key
            ) w CROSS JOIN LATERAL unnest(ARRAY[
                holdfast.limit_scope(NULL, false, w.agent, w.limit_key),
                holdfast.limit_scope(w.agent, false, w.agent, w.limit_key),
                holdfast.limit_scope(w.agent, true, w.agent, w.limit_key)]) scope
            GROUP BY scope
        ) s;
        -- What counts no more, also after the clock went back.
        DELETE FROM holdfast.task_starts s
        WHERE s.tenant = in_tenant AND (s.until <= in_now OR s.at > in_now);
        SELECT coalesce(jsonb_object_agg(s.scope, s.count), '{}') INTO started FROM (
            SELECT s.scope, count(*) AS count FROM holdfast.task_starts s
            WHERE s.tenant = in_tenant GROUP BY s.scope
        ) s;
    END IF;
    WHILE room > 0 AND level IS NOT NULL LOOP
        refused := false;
        FOR candidate IN SELECT * FROM holdfast.due_tasks(
            in_tenant, in_agents, room, in_serial, in_now, level, chosen, contexts, full_agents,
            full_keys, in_versions)
        LOOP
            SELECT l.* INTO bound FROM holdfast.limits_of_task(
                in_limits, candidate.agent, candidate.limit_key) l
            WHERE (at_work ->> l.scope)::bigint >= l.concurrency
                OR (started ->> (l.scope || l.period))::bigint >= l.count
            LIMIT 1;
            IF FOUND THEN
                refused := true;
                IF bound.keyed THEN
                    full_keys := full_keys || (candidate.agent || E'\n' || candidate.limit_key);
                ELSIF bound.scope = 'tenant' THEN
                    RETURN;
                ELSE
                    full_agents := full_agents || candidate.agent;
                END IF;
                CONTINUE;
            END IF;
            SELECT coalesce(at_work || jsonb_object_agg(
                       l.scope, coalesce((at_work ->> l.scope)::bigint, 0) + 1), at_work),
                   coalesce(started || jsonb_object_agg(
                       l.scope || l.period,
                       coalesce((started ->> (l.scope || l.period))::bigint, 0) + 1), started)
            INTO at_work, started
            FROM holdfast.limits_of_task(in_limits, candidate.agent, candidate.limit_key) l;
            INSERT INTO holdfast.task_starts (tenant, scope, at, until)
            SELECT DISTINCT in_tenant, l.scope || l.period, in_now,
                   in_now + make_interval(secs => l.seconds)
            FROM holdfast.limits_of_task(in_limits, candidate.agent, candidate.limit_key) l
            WHERE l.count IS NOT NULL;
            chosen := chosen || candidate.place;
            contexts := contexts || candidate.context_key;
            room := room - 1;
            place := candidate.place;
            context_key := candidate.context_key;
            awaited := candidate.awaited;
            RETURN NEXT;
        END LOOP;
        IF NOT refused THEN
            -- The next lower priority that has tasks; 0 comes last.
            level := CASE WHEN level > 0 THEN coalesce((
                SELECT t.priority FROM holdfast.tasks t
                WHERE t.tenant = in_tenant AND t.state = 'submitted' AND t.priority > 0
                    AND t.priority < level
                ORDER BY t.priority DESC LIMIT 1), 0) END;
        END IF;
    END LOOP;
END
$$;

-- The limits that hold for a task, what they count, and the period of their rate as a text.
CREATE OR REPLACE FUNCTION holdfast.limits_of_task(in_limits jsonb, in_agent text, in_key text)
RETURNS TABLE (keyed boolean, concurrency bigint, count bigint, seconds double precision,
               scope text, period text)
LANGUAGE sql IMMUTABLE
AS $$
    SELECT l.keyed, l.concurrency, l.count, l.seconds,
           holdfast.limit_scope(l.agent, l.keyed, in_agent, in_key),
           E'\n' || coalesce(l.seconds::text, '')
    FROM jsonb_to_recordset(in_limits) AS l (
        agent text, keyed boolean, concurrency bigint, count bigint, seconds double precision)
    WHERE (l.agent IS NULL OR l.agent = in_agent) AND (NOT l.keyed OR in_key <> '')
$$;
