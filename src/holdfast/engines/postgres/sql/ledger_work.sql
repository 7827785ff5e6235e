-- Each walks an index from tenant to tenant, however many tasks a tenant has.

-- name: due
-- Tenants that have tasks to claim: $1 limit.
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
SELECT tenant FROM walk WHERE due_at <= holdfast.now() LIMIT $1;

-- name: working
-- Tenants that have tasks at work: $1 limit.
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
SELECT tenant FROM walk LIMIT $1;

-- name: deliveries
-- Tenants that have news to deliver: $1 limit.
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
SELECT tenant FROM walk WHERE next_due_at <= holdfast.now() LIMIT $1;

-- name: uncopied
-- Tenants that have tasks at rest with messages to copy: $1 limit.
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
SELECT tenant FROM walk LIMIT $1;
-- name: cleanup
-- Tenants that have marks of ended tasks to carry out: $1 limit.
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
SELECT tenant FROM walk WHERE due_at <= holdfast.now() LIMIT $1;

-- name: survey
-- Tenants that have tasks to claim, tasks at work, messages to copy or marks to carry out, up to $1
-- each, of all tenants or of $2; and in how many seconds the next task becomes due.
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
 WHERE due_at <= holdfast.now() AND ($2::text[] IS NULL OR tenant = ANY ($2)) LIMIT $1)
UNION ALL
(SELECT 'working', tenant, NULL FROM at_work
 WHERE $2::text[] IS NULL OR tenant = ANY ($2) LIMIT $1)
UNION ALL
(SELECT 'uncopied', tenant, NULL FROM rested
 WHERE $2::text[] IS NULL OR tenant = ANY ($2) LIMIT $1)
UNION ALL
(SELECT 'cleanup', tenant, NULL FROM marked
 WHERE due_at <= holdfast.now() AND ($2::text[] IS NULL OR tenant = ANY ($2)) LIMIT $1)
UNION ALL
(SELECT 'later', '', extract(epoch FROM l.due_at - holdfast.now())::double precision FROM (
    SELECT min(due_at) AS due_at FROM queued
    WHERE due_at > holdfast.now() AND due_at < 'infinity'
        AND ($2::text[] IS NULL OR tenant = ANY ($2))
 ) l WHERE l.due_at IS NOT NULL);

-- name: ring
-- Notify workers: $1 topics.
SELECT pg_notify('holdfast', topic) FROM unnest($1::text[]) AS topic;
