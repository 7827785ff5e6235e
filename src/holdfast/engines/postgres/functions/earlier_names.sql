-- version: 1
-- Functions that processes of an earlier version call while this one is rolled out.

CREATE OR REPLACE FUNCTION holdfast.append_event(
    the_tenant text, the_session text, the_agent text, the_type text, the_id text, the_run text,
    the_time timestamptz, the_body text
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_event(
        the_tenant, the_session, the_agent, the_type, the_id, the_run, the_time, the_body);
$$;

CREATE OR REPLACE FUNCTION holdfast.append_to_session(
    the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_session_events(
        the_tenant, the_session, the_agents, the_types, the_ids, the_runs, the_times, the_bodies);
$$;

CREATE OR REPLACE FUNCTION holdfast.append_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies);
$$;

CREATE OR REPLACE FUNCTION holdfast.append_embedded_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[],
    the_numbers real[], the_dimension int
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_embedded_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        the_numbers, the_dimension);
$$;
