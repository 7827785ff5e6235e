-- version: 3
-- What a process of the hybrid engine, an indexer and an upgrade ask of all tenants. See all_tenants.sql.

-- Sessions whose numbering was taken back from Redis and has not been granted to it again: at most so many.
CREATE OR REPLACE FUNCTION holdfast.sessions_overtaken(at_most bigint)
RETURNS TABLE (tenant text, session text, epoch int) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_consolidator');
SELECT s.tenant, s.id, s.epoch FROM holdfast.sessions s WHERE s.overtaken LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.sessions_overtaken(at_most bigint) FROM PUBLIC;

-- Sessions of which a process may have lost something with Redis.
CREATE OR REPLACE FUNCTION holdfast.sessions_unsettled(the_writer text)
RETURNS TABLE (tenant text, session text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT DISTINCT s.tenant, s.id FROM holdfast.session_gaps g
JOIN holdfast.sessions s ON s.tenant = g.tenant AND s.key = g.session_key
WHERE g.writers @> ARRAY[the_writer::text] AND g.writers <> '{}' AND NOT g.open
$$;
REVOKE ALL ON FUNCTION holdfast.sessions_unsettled(the_writer text) FROM PUBLIC;

-- A process that ends has nothing left that is not stored.
CREATE OR REPLACE FUNCTION holdfast.release_writer(the_writer text)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
WITH states AS (
    UPDATE holdfast.state_snapshots SET writers = array_remove(writers, the_writer::text)
    WHERE writers @> ARRAY[the_writer::text] AND writers <> '{}'
)
UPDATE holdfast.sessions SET writers = array_remove(writers, the_writer::text)
WHERE writers @> ARRAY[the_writer::text] AND writers <> '{}'
$$;
REVOKE ALL ON FUNCTION holdfast.release_writer(the_writer text) FROM PUBLIC;

-- Sessions that Redis does not have all of, the oldest write first.
CREATE OR REPLACE FUNCTION holdfast.sessions_aside(at_most bigint)
RETURNS TABLE (tenant text, session text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_consolidator');
SELECT tenant, session_id FROM holdfast.state_asides ORDER BY stamp LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.sessions_aside(at_most bigint) FROM PUBLIC;

-- The tenants of a model (the_model) with something to index or to embed that nobody has taken.
CREATE OR REPLACE FUNCTION holdfast.tenants_to_embed(the_model text)
RETURNS TABLE (tenant text) LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT m.tenant FROM holdfast.event_models m
WHERE m.model = the_model AND (
    EXISTS (SELECT FROM holdfast.unindexed_events u WHERE u.tenant = m.tenant)
    OR EXISTS (
        SELECT FROM holdfast.unembedded_events u
        WHERE u.tenant = m.tenant AND u.taken_until <= holdfast.now()))
$$;
REVOKE ALL ON FUNCTION holdfast.tenants_to_embed(the_model text) FROM PUBLIC;

-- Which agents of which tenants have events that no index has yet: at most so many.
CREATE OR REPLACE FUNCTION holdfast.agents_to_index(at_most bigint)
RETURNS TABLE (tenant text, agent text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT holdfast.check_login('holdfast_worker', 'holdfast_consolidator');
SELECT DISTINCT tenant, agent FROM holdfast.unindexed_events LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.agents_to_index(at_most bigint) FROM PUBLIC;

-- How many events of all tenants wait for the index at most.
CREATE OR REPLACE FUNCTION holdfast.events_to_index()
RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT COALESCE(sum(last_seq - first_seq + 1), 0)::bigint FROM holdfast.unindexed_events
$$;
REVOKE ALL ON FUNCTION holdfast.events_to_index() FROM PUBLIC;

-- Forget moves of sessions of which nothing is stored.
CREATE OR REPLACE FUNCTION holdfast.skip_empty_moves()
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DELETE FROM holdfast.session_moves m
WHERE NOT EXISTS (SELECT FROM holdfast.sessions s WHERE s.tenant = m.tenant AND s.id = m.session)
    AND NOT EXISTS (
        SELECT FROM holdfast.states s WHERE s.tenant = m.tenant AND s.session_id = m.session)
    AND NOT EXISTS (
        SELECT FROM holdfast.state_snapshots s
        WHERE s.tenant = m.tenant AND s.session_id = m.session)
    AND NOT EXISTS (
        SELECT FROM holdfast.state_asides s
        WHERE s.tenant = m.tenant AND s.session_id = m.session)
$$;
REVOKE ALL ON FUNCTION holdfast.skip_empty_moves() FROM PUBLIC;

-- Whether there is anything to move.
CREATE OR REPLACE FUNCTION holdfast.has_moves()
RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT EXISTS (SELECT 1 FROM holdfast.session_moves)
$$;
REVOKE ALL ON FUNCTION holdfast.has_moves() FROM PUBLIC;

-- Sessions to move, in order, after one: the_tenant tenant, the_session session, at_most limit.
CREATE OR REPLACE FUNCTION holdfast.moves_after(the_tenant text, the_session text, at_most bigint)
RETURNS TABLE (tenant text, session text, owner text, needs_hot_store boolean) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT m.tenant, m.session, m.owner,
    EXISTS (
        SELECT FROM holdfast.sessions s
        WHERE s.tenant = m.tenant AND s.id = m.session AND s.hot
    ) OR EXISTS (
        SELECT FROM holdfast.state_snapshots s
        WHERE s.tenant = m.tenant AND s.session_id = m.session AND NOT s.cleared
    ) OR EXISTS (
        SELECT FROM holdfast.state_asides s
        WHERE s.tenant = m.tenant AND s.session_id = m.session
    ) AS needs_hot_store
FROM holdfast.session_moves m
WHERE (m.tenant, m.session) > (the_tenant, the_session) ORDER BY m.tenant, m.session LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.moves_after(the_tenant text, the_session text, at_most bigint) FROM PUBLIC;

-- Sessions that wait for an operator, with their tenants: at most so many.
CREATE OR REPLACE FUNCTION holdfast.sessions_unassigned(at_most bigint)
RETURNS TABLE (tenant text, session text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT s.tenant, s.id FROM holdfast.sessions s
WHERE s.id >= 'holdfast.unassigned:' AND s.id < 'holdfast.unassigned;'
UNION
SELECT t.tenant, t.session_id FROM holdfast.states t
WHERE t.session_id >= 'holdfast.unassigned:' AND t.session_id < 'holdfast.unassigned;'
UNION
SELECT t.tenant, t.session_id FROM holdfast.state_snapshots t
WHERE t.session_id >= 'holdfast.unassigned:' AND t.session_id < 'holdfast.unassigned;'
    AND NOT t.cleared
ORDER BY 1, 2 LIMIT at_most
$$;
REVOKE ALL ON FUNCTION holdfast.sessions_unassigned(at_most bigint) FROM PUBLIC;
