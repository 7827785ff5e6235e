-- transaction: none
-- Finds the last change of state before an event without the events between. The first change of a
-- task is its first event, and one that ends it is its last: neither needs an entry.
CREATE INDEX CONCURRENTLY IF NOT EXISTS task_moves ON holdfast.task_events (tenant, task_id, seq)
    WHERE kind = 'request' OR (kind = 'transition' AND number > 1
        AND to_state NOT IN ('completed', 'failed', 'canceled', 'rejected'));

-- Tasks that took over blobs of another one hold them as well.
CREATE INDEX CONCURRENTLY IF NOT EXISTS task_cleanup_of_ref ON holdfast.task_cleanup (tenant, ref);

-- Who did it, as the caller named them: holdfast.acting sets it for the statement.
ALTER TABLE holdfast.task_events ADD COLUMN IF NOT EXISTS by_name text COLLATE "C";
ALTER TABLE holdfast.task_events
    ALTER COLUMN by_name SET DEFAULT nullif(current_setting('holdfast.by', true), '');
