-- transaction: none
-- An erasure of a subject finds the sessions about it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_by_subject
    ON holdfast.sessions (tenant, subject) WHERE subject IS NOT NULL;
