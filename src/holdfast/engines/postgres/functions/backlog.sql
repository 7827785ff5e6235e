-- version: 2
-- How much work of all tenants waits, for metrics: numbers, and names of agents that the caller knows. It
-- walks the indexes of open tasks, however many have ended, and counts up to at_most tasks of each state.
CREATE OR REPLACE FUNCTION holdfast.backlog(these text[], at_most bigint)
RETURNS TABLE (kind text, state text, agent text, amount double precision)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker', 'holdfast_consolidator');
WITH RECURSIVE queues AS (
    (SELECT t.tenant, t.due_at FROM holdfast.tasks t WHERE t.state = 'submitted'
     ORDER BY t.tenant, t.due_at, t.id LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.due_at FROM queues w CROSS JOIN LATERAL (
        SELECT t.tenant, t.due_at FROM holdfast.tasks t
        WHERE t.state = 'submitted' AND t.tenant > w.tenant
        ORDER BY t.tenant, t.due_at, t.id LIMIT 1
    ) n
), suspended AS (
    -- The condition of the index tasks_by_rare_state, also where one state is meant.
    (SELECT t.tenant FROM holdfast.tasks t
     WHERE t.state IN ('input-required', 'auth-required', 'paused', 'failed', 'canceled', 'rejected')
     ORDER BY t.tenant, t.state LIMIT 1)
    UNION ALL
    SELECT n.tenant FROM suspended w CROSS JOIN LATERAL (
        SELECT t.tenant FROM holdfast.tasks t
        WHERE t.state IN ('input-required', 'auth-required', 'paused', 'failed', 'canceled', 'rejected')
            AND t.tenant > w.tenant
        ORDER BY t.tenant, t.state LIMIT 1
    ) n
), open_tasks AS (
    (SELECT t.state, t.agent FROM holdfast.tasks t WHERE t.state = 'submitted'
     ORDER BY t.tenant, t.due_at, t.id LIMIT at_most)
    UNION ALL
    (SELECT t.state, t.agent FROM holdfast.tasks t WHERE t.state = 'working'
     ORDER BY t.tenant, t.context_key LIMIT at_most)
    UNION ALL
    SELECT one.state, found.agent
    FROM unnest(ARRAY['input-required', 'auth-required', 'paused']) one (state)
    CROSS JOIN LATERAL (
        SELECT of_tenant.agent FROM (SELECT tenant FROM suspended LIMIT at_most) w
        CROSS JOIN LATERAL (
            SELECT t.agent FROM holdfast.tasks t
            WHERE t.tenant = w.tenant AND t.state = one.state
                AND t.state IN (
                    'input-required', 'auth-required', 'paused', 'failed', 'canceled', 'rejected')
            ORDER BY t.updated_at, t.id LIMIT at_most
        ) of_tenant
        LIMIT at_most
    ) found
)
SELECT 'task', o.state, CASE WHEN o.agent = ANY (these) THEN o.agent ELSE '' END, count(*)::double precision
FROM open_tasks o GROUP BY 2, 3
UNION ALL
SELECT 'oldest', '', '', COALESCE(max(extract(epoch FROM holdfast.now() - q.due_at)), 0)::double precision
FROM (SELECT due_at FROM queues LIMIT at_most) q WHERE q.due_at <= holdfast.now()
UNION ALL
SELECT 'unembedded', '', '', COALESCE(sum(u.last_seq - u.first_seq + 1), 0)::double precision
FROM (SELECT first_seq, last_seq FROM holdfast.unembedded_events LIMIT at_most) u
UNION ALL
SELECT 'dead', '', '', count(*)::double precision
FROM (SELECT 1 FROM holdfast.dead_letters LIMIT at_most) d
$$;
REVOKE ALL ON FUNCTION holdfast.backlog(these text[], at_most bigint) FROM PUBLIC;
