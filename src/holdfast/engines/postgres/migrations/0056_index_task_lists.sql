-- transaction: none
-- Lists of a tenant's tasks, the last changed first, and the feed of what changed: without it each of them
-- reads and sorts every task of the tenant.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_update
    ON holdfast.tasks (tenant, updated_at, id);

-- Lists by a state that few tasks have. Tasks that run through are never in it, so that it costs them
-- nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_rare_state
    ON holdfast.tasks (tenant, state, updated_at, id)
    WHERE state = ANY (ARRAY['input-required', 'auth-required', 'paused', 'failed', 'canceled', 'rejected']);
