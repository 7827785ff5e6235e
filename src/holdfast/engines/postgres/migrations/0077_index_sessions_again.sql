-- transaction: none
-- Lists of sessions in the order of their start. Each is partial, by a condition that all rows meet and only
-- lists state: without statistics, a look-up by tenant and id would take an index that has other columns
-- between the two, and read all sessions of a tenant.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_listed
    ON holdfast.sessions (tenant, started_at DESC, id DESC) WHERE started_at > '-infinity';
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_listed_by_agent
    ON holdfast.sessions (tenant, agent, started_at DESC, id DESC) WHERE started_at > '-infinity';

-- A session by its key, which is unique by itself: with the tenant in front it would serve any look-up in a
-- tenant, as above.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS sessions_keyed ON holdfast.sessions (key, tenant);
