-- The first parameter of a tenant's statement: it says for whom the statement runs, until its end. The
-- server reads parameters before it plans and runs a statement.
CREATE DOMAIN holdfast.for_tenant AS text COLLATE "C"
    CHECK (VALUE <> '' AND pg_catalog.set_config('holdfast.tenant', VALUE, true) = VALUE);

-- A sequence that all tenants share tells one of them how much the others write.
ALTER TABLE holdfast.states
    ALTER COLUMN version SET DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
