-- transaction: none
-- An erasure of a subject finds the documents about it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS documents_by_subject
    ON holdfast.documents (tenant, subject) WHERE subject <> '';
