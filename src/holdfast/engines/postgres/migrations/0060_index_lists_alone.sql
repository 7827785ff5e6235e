-- transaction: none
-- Lists of tasks and contexts in the order of time. Each is partial, by a condition that all rows meet and
-- only lists state: without statistics, a look-up by tenant and id would take an index that has other
-- columns between the two, and read all of a tenant.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_listed
    ON holdfast.tasks (tenant, updated_at, id) WHERE updated_at > '-infinity';

-- Tasks without an owner are in the list of the tenant alone.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_listed_by_owner
    ON holdfast.tasks (tenant, owner, updated_at, id) WHERE owner <> '' AND updated_at > '-infinity';

CREATE INDEX CONCURRENTLY IF NOT EXISTS task_contexts_listed
    ON holdfast.task_contexts (tenant, owner, created_at, id) WHERE created_at > '-infinity';
