-- version: 1
-- Errors of our own.

-- Raises one of our own errors; the detail carries its facts to the client.
CREATE OR REPLACE FUNCTION holdfast.fail(state text, message text, facts jsonb) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = facts::text;
END
$$;
