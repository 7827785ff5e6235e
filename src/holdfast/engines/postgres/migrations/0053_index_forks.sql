-- transaction: none
-- The forks of a session, which are erased with it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_by_parent
    ON holdfast.sessions (tenant, parent) WHERE parent IS NOT NULL;
