-- transaction: none
-- The policies of the tables ask for the tenant of every row that is read: with the tenant in it the index
-- alone answers a walk.
CREATE INDEX CONCURRENTLY IF NOT EXISTS relationships_from
    ON holdfast.relationships (tenant, source) INCLUDE (target, type);
CREATE INDEX CONCURRENTLY IF NOT EXISTS relationships_to
    ON holdfast.relationships (tenant, target) INCLUDE (source, type);
CREATE INDEX CONCURRENTLY IF NOT EXISTS entities_of_tenant
    ON holdfast.entities (tenant, number) INCLUDE (id);
