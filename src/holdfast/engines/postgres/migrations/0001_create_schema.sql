-- The schema, the record of its migrations, and the engine's clock.
CREATE SCHEMA IF NOT EXISTS holdfast;
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

CREATE TABLE IF NOT EXISTS holdfast.migrations (
    version int PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- One place for the time, so that a test can move it; it inlines to clock_timestamp().
CREATE FUNCTION holdfast.now() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT clock_timestamp() $$;

-- Raises one of our own errors; the detail carries its facts to the client.
CREATE FUNCTION holdfast.fail(state text, message text, facts jsonb) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = facts::text;
END
$$;
