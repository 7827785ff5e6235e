-- version: 2
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

-- Store a data key in place of the current one of its subject, if that has the number was. Whether it is
-- stored, also by a call before.
CREATE OR REPLACE FUNCTION holdfast.replace_data_key(
    the_tenant text, the_number bigint, the_subject text, the_kek text, the_wrapped bytea, was bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    earliest bigint;
BEGIN
    UPDATE holdfast.data_keys k SET replaced = true
    WHERE k.tenant = the_tenant AND k.number = was AND k.subject = the_subject AND NOT k.replaced
    RETURNING coalesce(k.first_number, k.number) INTO earliest;
    IF earliest IS NOT NULL THEN
        INSERT INTO holdfast.data_keys
            (tenant, number, subject, kek, wrapped, created_at, first_number)
        VALUES (the_tenant, the_number, the_subject, the_kek, the_wrapped, holdfast.now(), earliest);
    END IF;
    RETURN EXISTS (
        SELECT FROM holdfast.data_keys k WHERE k.tenant = the_tenant AND k.number = the_number);
END
$$;
