-- transaction: none
-- An erasure of a subject finds the items about it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS items_by_subject
    ON holdfast.items (tenant, subject) WHERE subject <> '';
