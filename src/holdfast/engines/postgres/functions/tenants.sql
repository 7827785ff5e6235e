-- version: 1
-- The tenants that have data, for an operator: names, and no content. It goes from tenant to tenant in the
-- primary keys, however much each holds.
CREATE OR REPLACE FUNCTION holdfast.list_tenants(after_tenant text, at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker', 'holdfast_consolidator');
WITH RECURSIVE walk AS (
    SELECT after_tenant COLLATE "C" AS tenant
    UNION ALL
    SELECT least(
        (SELECT t.tenant FROM holdfast.sessions t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.tasks t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.states t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.state_snapshots t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.fact_scopes t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.boards t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.entities t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.threads t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.items t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.schedules t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.collections t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.channels t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.blob_index t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1),
        (SELECT t.tenant FROM holdfast.api_keys t WHERE t.tenant > w.tenant ORDER BY t.tenant LIMIT 1)
    ) COLLATE "C"
    FROM walk w WHERE w.tenant IS NOT NULL
)
SELECT w.tenant FROM walk w WHERE w.tenant > after_tenant COLLATE "C" LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.list_tenants(after_tenant text, at_most bigint) FROM PUBLIC;
