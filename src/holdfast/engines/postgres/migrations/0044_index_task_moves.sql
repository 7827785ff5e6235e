-- transaction: none
-- Finds the last change of state before an event without the events between. The first change of a
-- task is its first event, and one that ends it is its last: neither needs an entry.
CREATE INDEX CONCURRENTLY task_moves ON holdfast.task_events (tenant, task_id, seq)
    WHERE kind = 'request' OR (kind = 'transition' AND number > 1
        AND to_state NOT IN ('completed', 'failed', 'canceled', 'rejected'));
