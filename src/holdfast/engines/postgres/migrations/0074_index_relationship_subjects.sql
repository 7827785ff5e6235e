-- transaction: none
-- An erasure of a subject finds the relationships about it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS relationships_by_subject
    ON holdfast.relationships (tenant, subject) WHERE subject <> '';
