-- transaction: none
-- The transaction that wrote an event: what all transactions before the oldest open one wrote is
-- complete. Events that were written before have none, and are not in the feed.
ALTER TABLE holdfast.task_events ADD COLUMN IF NOT EXISTS written_by xid8;
ALTER TABLE holdfast.task_events ALTER COLUMN written_by SET DEFAULT pg_current_xact_id();

CREATE INDEX CONCURRENTLY IF NOT EXISTS task_changes
    ON holdfast.task_events (tenant, written_by, task_id, seq)
    WHERE kind = 'transition' AND written_by IS NOT NULL;
