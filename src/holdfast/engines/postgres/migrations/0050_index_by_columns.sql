-- transaction: none
-- Below a policy an index serves conditions on columns, not on text that is put together: whatever may
-- tell what it is given runs after the policy. These take the place of indexes on such text; the tenant
-- comes second, so that a look-up by tenant and id cannot take them on a table without statistics.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_owner
    ON holdfast.tasks (owner, tenant, updated_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS task_contexts_by_owner
    ON holdfast.task_contexts (owner, tenant, created_at, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_parent
    ON holdfast.tasks (parent_id, tenant, id) WHERE parent_id <> '';

CREATE INDEX CONCURRENTLY IF NOT EXISTS task_inbox_by_task
    ON holdfast.task_inbox (task_id, tenant, topic, number) WHERE NOT received;

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_key
    ON holdfast.tasks (tenant, submit_key, owner) WHERE submit_key <> '';

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS task_messages_by_name
    ON holdfast.task_events (tenant, message_id, task_id) WHERE kind = 'message';
