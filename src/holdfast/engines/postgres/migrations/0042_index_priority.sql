-- transaction: none
-- Only tasks that wait and have a priority, so that all others write no entry.
DROP INDEX IF EXISTS holdfast.tasks_by_priority;
CREATE INDEX CONCURRENTLY tasks_by_priority ON holdfast.tasks (tenant, priority, due_at, id)
    WHERE state = 'submitted' AND priority > 0;
