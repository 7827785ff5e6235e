-- transaction: none
-- An erasure of a subject finds the entities about it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS entities_by_subject
    ON holdfast.entities (tenant, subject) WHERE subject <> '';
