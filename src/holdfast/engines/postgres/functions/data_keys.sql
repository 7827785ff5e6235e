-- version: 1
-- Tenants after a name that have data keys which another key-encrypting key wraps, in order: at most so many.
-- It runs as the owner of the schema, who alone sees the rows of all, and returns names only.
CREATE OR REPLACE FUNCTION holdfast.tenants_to_rewrap(the_kek text, the_last text, at_most bigint)
RETURNS TABLE (tenant text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker');
SELECT DISTINCT k.tenant FROM holdfast.data_keys k
WHERE k.kek <> the_kek AND k.tenant > the_last ORDER BY k.tenant LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_to_rewrap(the_kek text, the_last text, at_most bigint) FROM PUBLIC;
