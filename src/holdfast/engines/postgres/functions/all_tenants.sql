-- version: 2
-- What concerns all tenants: which of them have work. These run as the owner of the schema, who alone sees
-- the rows of all, and return names and numbers, no content. Whoever asks then acts for each tenant.

-- Tenants that have tasks to claim: at most so many.
CREATE OR REPLACE FUNCTION holdfast.tenants_due(at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE walk AS (
    (SELECT t.tenant, t.due_at FROM holdfast.tasks t WHERE t.state = 'submitted'
     ORDER BY t.tenant, t.due_at, t.id LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.due_at FROM walk w CROSS JOIN LATERAL (
        SELECT t.tenant, t.due_at FROM holdfast.tasks t
        WHERE t.state = 'submitted' AND t.tenant > w.tenant
        ORDER BY t.tenant, t.due_at, t.id LIMIT 1
    ) n
)
SELECT tenant FROM walk WHERE due_at <= holdfast.now() LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_due(at_most bigint) FROM PUBLIC;

-- Tenants that have tasks at work: at most so many.
CREATE OR REPLACE FUNCTION holdfast.tenants_at_work(at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE walk AS (
    (SELECT t.tenant FROM holdfast.tasks t WHERE t.state = 'working' AND NOT t.adopted
     ORDER BY t.tenant, t.context_key LIMIT 1)
    UNION ALL
    SELECT n.tenant FROM walk w CROSS JOIN LATERAL (
        SELECT t.tenant FROM holdfast.tasks t
        WHERE t.state = 'working' AND NOT t.adopted AND t.tenant > w.tenant
        ORDER BY t.tenant, t.context_key LIMIT 1
    ) n
)
SELECT tenant FROM walk LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_at_work(at_most bigint) FROM PUBLIC;

-- Tenants that have news to deliver: at most so many.
CREATE OR REPLACE FUNCTION holdfast.tenants_with_news(at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE walk AS (
    (SELECT p.tenant, p.next_due_at FROM holdfast.push_configs p WHERE p.next_seq IS NOT NULL
     ORDER BY p.tenant, p.next_due_at, p.next_number LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.next_due_at FROM walk w CROSS JOIN LATERAL (
        SELECT p.tenant, p.next_due_at FROM holdfast.push_configs p
        WHERE p.next_seq IS NOT NULL AND p.tenant > w.tenant
        ORDER BY p.tenant, p.next_due_at, p.next_number LIMIT 1
    ) n
)
SELECT tenant FROM walk WHERE next_due_at <= holdfast.now() LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_with_news(at_most bigint) FROM PUBLIC;

-- Tenants that have tasks at rest with messages to copy: at most so many.
CREATE OR REPLACE FUNCTION holdfast.tenants_with_copies(at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE walk AS (
    (SELECT t.tenant FROM holdfast.tasks t
     WHERE NOT t.copied AND t.state NOT IN ('submitted', 'working')
     ORDER BY t.tenant, t.updated_at, t.id LIMIT 1)
    UNION ALL
    SELECT n.tenant FROM walk w CROSS JOIN LATERAL (
        SELECT t.tenant FROM holdfast.tasks t
        WHERE NOT t.copied AND t.state NOT IN ('submitted', 'working') AND t.tenant > w.tenant
        ORDER BY t.tenant, t.updated_at, t.id LIMIT 1
    ) n
)
SELECT tenant FROM walk LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_with_copies(at_most bigint) FROM PUBLIC;

-- Tenants that have marks of ended tasks to carry out: at most so many.
CREATE OR REPLACE FUNCTION holdfast.tenants_to_clean(at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE walk AS (
    (SELECT c.tenant, c.due_at FROM holdfast.task_cleanup c WHERE c.due_at IS NOT NULL
     ORDER BY c.tenant, c.due_at LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.due_at FROM walk w CROSS JOIN LATERAL (
        SELECT c.tenant, c.due_at FROM holdfast.task_cleanup c
        WHERE c.due_at IS NOT NULL AND c.tenant > w.tenant
        ORDER BY c.tenant, c.due_at LIMIT 1
    ) n
)
SELECT tenant FROM walk WHERE due_at <= holdfast.now() LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_to_clean(at_most bigint) FROM PUBLIC;

-- Tenants that have tasks to claim, tasks at work, messages to copy or marks to carry out, up to at_most
-- each, of all tenants or of these; and in how many seconds the next task becomes due.
CREATE OR REPLACE FUNCTION holdfast.survey_work(at_most bigint, these text[])
RETURNS TABLE (kind text, tenant text, seconds double precision) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE queued AS (
    (SELECT t.tenant, t.due_at FROM holdfast.tasks t WHERE t.state = 'submitted'
     ORDER BY t.tenant, t.due_at, t.id LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.due_at FROM queued w CROSS JOIN LATERAL (
        SELECT t.tenant, t.due_at FROM holdfast.tasks t
        WHERE t.state = 'submitted' AND t.tenant > w.tenant
        ORDER BY t.tenant, t.due_at, t.id LIMIT 1
    ) n
), at_work AS (
    (SELECT t.tenant FROM holdfast.tasks t WHERE t.state = 'working' AND NOT t.adopted
     ORDER BY t.tenant, t.context_key LIMIT 1)
    UNION ALL
    SELECT n.tenant FROM at_work w CROSS JOIN LATERAL (
        SELECT t.tenant FROM holdfast.tasks t
        WHERE t.state = 'working' AND NOT t.adopted AND t.tenant > w.tenant
        ORDER BY t.tenant, t.context_key LIMIT 1
    ) n
), rested AS (
    (SELECT t.tenant FROM holdfast.tasks t
     WHERE NOT t.copied AND t.state NOT IN ('submitted', 'working')
     ORDER BY t.tenant, t.updated_at, t.id LIMIT 1)
    UNION ALL
    SELECT n.tenant FROM rested w CROSS JOIN LATERAL (
        SELECT t.tenant FROM holdfast.tasks t
        WHERE NOT t.copied AND t.state NOT IN ('submitted', 'working') AND t.tenant > w.tenant
        ORDER BY t.tenant, t.updated_at, t.id LIMIT 1
    ) n
), marked AS (
    (SELECT c.tenant, c.due_at FROM holdfast.task_cleanup c WHERE c.due_at IS NOT NULL
     ORDER BY c.tenant, c.due_at LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.due_at FROM marked w CROSS JOIN LATERAL (
        SELECT c.tenant, c.due_at FROM holdfast.task_cleanup c
        WHERE c.due_at IS NOT NULL AND c.tenant > w.tenant
        ORDER BY c.tenant, c.due_at LIMIT 1
    ) n
)
(SELECT 'due' AS kind, tenant, NULL::double precision AS seconds FROM queued
 WHERE due_at <= holdfast.now() AND (these::text[] IS NULL OR tenant = ANY (these)) LIMIT at_most)
UNION ALL
(SELECT 'working', tenant, NULL FROM at_work
 WHERE these::text[] IS NULL OR tenant = ANY (these) LIMIT at_most)
UNION ALL
(SELECT 'uncopied', tenant, NULL FROM rested
 WHERE these::text[] IS NULL OR tenant = ANY (these) LIMIT at_most)
UNION ALL
(SELECT 'cleanup', tenant, NULL FROM marked
 WHERE due_at <= holdfast.now() AND (these::text[] IS NULL OR tenant = ANY (these)) LIMIT at_most)
UNION ALL
(SELECT 'later', '', extract(epoch FROM l.due_at - holdfast.now())::double precision FROM (
    SELECT min(due_at) AS due_at FROM queued
    WHERE due_at > holdfast.now() AND due_at < 'infinity'
        AND (these::text[] IS NULL OR tenant = ANY (these))
 ) l WHERE l.due_at IS NOT NULL)
$$;
REVOKE ALL ON FUNCTION holdfast.survey_work(at_most bigint, these text[]) FROM PUBLIC;

-- Tenants that have due schedules (at most so many; of these, if given), and in each row how many seconds there are until the
-- next one is due; in at least one row.
CREATE OR REPLACE FUNCTION holdfast.tenants_scheduled(at_most bigint, these text[])
RETURNS TABLE (tenant text, seconds double precision) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
WITH RECURSIVE walk AS (
    (SELECT s.tenant, s.next_at FROM holdfast.schedules s
     WHERE s.next_at IS NOT NULL AND NOT s.paused ORDER BY s.tenant, s.next_at LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.next_at FROM walk w CROSS JOIN LATERAL (
        SELECT s.tenant, s.next_at FROM holdfast.schedules s
        WHERE s.next_at IS NOT NULL AND NOT s.paused AND s.tenant > w.tenant
        ORDER BY s.tenant, s.next_at LIMIT 1
    ) n
), mine AS MATERIALIZED (
    SELECT w.tenant, w.next_at FROM walk w WHERE these::text[] IS NULL OR w.tenant = ANY (these)
), now AS MATERIALIZED (SELECT holdfast.now() AS at)
SELECT t.tenant, extract(epoch FROM (SELECT min(m.next_at) FROM mine m) - now.at)::float AS seconds
FROM now LEFT JOIN LATERAL (
    SELECT m.tenant FROM mine m WHERE m.next_at <= now.at ORDER BY m.tenant LIMIT at_most
) t ON true
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_scheduled(at_most bigint, these text[]) FROM PUBLIC;
