-- version: 11
-- The session log: appends, clears and moves.

-- The owner in the stored id of a session; empty for a session that nobody owns.
CREATE OR REPLACE FUNCTION holdfast.owner_of(the_id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN the_id ~ '^holdfast\.owner:[0-9]{1,3}:' THEN substr(
        the_id, 17 + length(split_part(the_id, ':', 2)), split_part(the_id, ':', 2)::int)
    ELSE ''
END;

-- What the ids of an owner's agents and sessions begin with.
CREATE OR REPLACE FUNCTION holdfast.owner_prefix(the_owner text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'holdfast.owner:' || length(the_owner) || ':' || the_owner || ':';

-- Take the numbering of a session back from Redis: the next epoch goes on after all that was
-- reserved. What Redis numbered and has not flushed may still arrive.
CREATE OR REPLACE FUNCTION holdfast.take_back(session holdfast.sessions) RETURNS holdfast.sessions
LANGUAGE plpgsql
AS $$
DECLARE
    found holdfast.sessions;
BEGIN
    INSERT INTO holdfast.session_gaps
        (tenant, session_key, epoch, from_seq, to_seq, open, writers)
    SELECT session.tenant, session.key, session.epoch, session.seq + 1, session.reserved, true,
           session.writers
    WHERE session.reserved > session.seq
    ON CONFLICT DO NOTHING;
    UPDATE holdfast.sessions s
    SET hot = false, overtaken = true, heat = s.heat + 1, epoch = s.epoch + 1, seq = s.reserved,
        writers = '{}'
    WHERE s.tenant = session.tenant AND s.id = session.id
    RETURNING * INTO found;
    RETURN found;
END
$$;

-- The session, made on first use, with its row locked and its numbering here: whoever holds it
-- writes its log.
CREATE OR REPLACE FUNCTION holdfast.lock_session(the_tenant text, the_session text, the_agent text)
RETURNS holdfast.sessions
LANGUAGE plpgsql
AS $$
DECLARE
    found holdfast.sessions;
BEGIN
    SELECT * INTO found FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF found.key IS NULL THEN
        INSERT INTO holdfast.sessions (tenant, id, agent, started_at)
        VALUES (the_tenant, the_session, the_agent, holdfast.now())
        ON CONFLICT DO NOTHING;
        SELECT * INTO found FROM holdfast.sessions s
        WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    END IF;
    IF found.deleted_at IS NOT NULL THEN
        UPDATE holdfast.sessions s
        SET agent = the_agent, started_at = holdfast.now(), deleted_at = NULL
        WHERE s.tenant = the_tenant AND s.id = the_session
        RETURNING * INTO found;
    END IF;
    IF found.hot THEN
        found := holdfast.take_back(found);
    END IF;
    RETURN found;
END
$$;

-- Whether an event that is stored under an id is the one that is appended under it again. The time is
-- no part of it: whoever builds an event again for a retry gives it another.
CREATE OR REPLACE FUNCTION holdfast.is_same_event(
    stored holdfast.events, the_agent text, the_type text, the_run text, the_body text
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (stored.agent, stored.type, stored.run, stored.body)
        IS NOT DISTINCT FROM (the_agent, the_type, the_run, the_body);
$$;

-- The events that are stored under ids, with the ordinals of these; of one session, or of one for each id. They
-- are looked up in the order of ids, which only their index has, and nothing may be sorted: without
-- statistics a planner would read a whole session for each id.
CREATE OR REPLACE FUNCTION holdfast.events_by_ids(
    the_tenant text, the_sessions bigint[], the_ids text[]
) RETURNS TABLE (at int, stored holdfast.events)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_sort = off
SET enable_bitmapscan = off
SET enable_seqscan = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT i.at::int, e.stored
    FROM (
        SELECT n.*, coalesce(the_sessions[n.at], the_sessions[1]) AS key
        FROM unnest(the_ids) WITH ORDINALITY AS n (id, at) OFFSET 0
    ) i
    CROSS JOIN LATERAL (
        SELECT v AS stored FROM holdfast.events v
        WHERE v.tenant = the_tenant AND v.session_key = i.key AND v.id BETWEEN i.id AND i.id
        ORDER BY v.id LIMIT 1
    ) e;
END
$$;

-- Append a batch to the log of one session, all or nothing, without a gap; ids that are there
-- already keep their place and time. Returns the places in the order of the input, and the time that is
-- stored, or NULL for the one that was given. Agents, types and runs that are the same for all may be
-- given once. What a filter sees of a body may be NULL: then the body is read when one asks.
CREATE OR REPLACE FUNCTION holdfast.store_session_events(
    the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[], the_filterables text[]
) RETURNS TABLE (place int, epoch int, seq bigint, first timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions := holdfast.lock_session(the_tenant, the_session, the_agents[1]);
    whom text := coalesce(session.subject, session.owner);
    known text[];
    added bigint := cardinality(the_ids);
    clashes text[];
BEGIN
    IF session.seq > 0 THEN
        SELECT array_agg((e.stored).id), array_agg((e.stored).id) FILTER (
            WHERE NOT holdfast.is_same_event(
                e.stored, coalesce(the_agents[e.at], the_agents[1]),
                coalesce(the_types[e.at], the_types[1]), coalesce(the_runs[e.at], the_runs[1]),
                the_bodies[e.at]))
        INTO known, clashes
        FROM holdfast.events_by_ids(the_tenant, ARRAY[session.key], the_ids) e;
    END IF;

    IF known IS NOT NULL THEN
        added := added - cardinality(known);
        IF clashes IS NOT NULL THEN
            PERFORM holdfast.fail(
                'HF001', the_session, jsonb_build_object('kind', 'event', 'key', clashes[1]));
        END IF;
    END IF;

    IF added > 0 THEN
        UPDATE holdfast.sessions s SET seq = s.seq + added
        WHERE s.tenant = the_tenant AND s.id = the_session;
        IF known IS NULL AND cardinality(the_agents) = 1 THEN
            -- All of it new and one agent's, as batches mostly are: the places are known beforehand.
            INSERT INTO holdfast.events
                (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
                 subject, filterable)
            SELECT the_tenant, session.key, session.epoch, session.seq + i.at,
                   i.id, the_agents[1], coalesce(i.type, the_types[1]),
                   coalesce(i.run, the_runs[1]), i.occurred_at, i.body, session.owner, whom,
                   i.filterable::jsonb
            FROM unnest(the_types, the_ids, the_runs, the_times, the_bodies, the_filterables)
                WITH ORDINALITY AS i (type, id, run, occurred_at, body, filterable, at);
            INSERT INTO holdfast.unindexed_events
                (tenant, agent, session_key, epoch, first_seq, last_seq)
            SELECT the_tenant, the_agents[1], session.key, session.epoch,
                   GREATEST(500 * n, session.seq + 1), LEAST(500 * n + 499, session.seq + added)
            FROM generate_series((session.seq + 1) / 500, (session.seq + added) / 500) AS n;
        ELSE
            WITH written AS (
                INSERT INTO holdfast.events
                    (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body,
                     owner, subject, filterable)
                SELECT the_tenant, session.key, session.epoch,
                       session.seq + row_number() OVER (ORDER BY i.at),
                       i.id, coalesce(i.agent, the_agents[1]), coalesce(i.type, the_types[1]),
                       coalesce(i.run, the_runs[1]), i.occurred_at, i.body, session.owner, whom,
                       i.filterable::jsonb
                FROM unnest(the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
                            the_filterables)
                    WITH ORDINALITY AS i (agent, type, id, run, occurred_at, body, filterable, at)
                WHERE known IS NULL OR i.id <> ALL (known)
                RETURNING agent, seq
            )
            INSERT INTO holdfast.unindexed_events
                (tenant, agent, session_key, epoch, first_seq, last_seq)
            -- In ranges that can be indexed one at a time, however many events there are.
            SELECT the_tenant, w.agent, session.key, session.epoch, min(w.seq), max(w.seq)
            FROM written w GROUP BY w.agent, w.seq / 500;
        END IF;
    END IF;

    IF known IS NULL THEN
        RETURN QUERY SELECT n::int, session.epoch, session.seq + n, NULL::timestamptz
                     FROM generate_series(1, added) AS n;
    ELSE
        RETURN QUERY SELECT e.at, (e.stored).epoch, (e.stored).seq, (e.stored).occurred_at
                     FROM holdfast.events_by_ids(the_tenant, ARRAY[session.key], the_ids) e;
    END IF;
END
$$;

-- One event, the hot path of every turn without Redis.
CREATE OR REPLACE FUNCTION holdfast.store_event(
    the_tenant text, the_session text, the_agent text, the_type text, the_id text, the_run text,
    the_time timestamptz, the_body text, the_filterable text
) RETURNS TABLE (place int, epoch int, seq bigint, first timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
    stored holdfast.events;
BEGIN
    UPDATE holdfast.sessions s SET seq = s.seq + 1
    WHERE s.tenant = the_tenant AND s.id = the_session AND NOT s.hot AND s.deleted_at IS NULL
    RETURNING * INTO session;
    IF session.key IS NULL THEN
        session := holdfast.lock_session(the_tenant, the_session, the_agent);
        UPDATE holdfast.sessions s SET seq = s.seq + 1
        WHERE s.tenant = the_tenant AND s.id = the_session RETURNING * INTO session;
    END IF;

    INSERT INTO holdfast.events
        (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner, subject,
         filterable)
    VALUES (the_tenant, session.key, session.epoch, session.seq, the_id, the_agent, the_type,
            the_run, the_time, the_body, session.owner, coalesce(session.subject, session.owner),
            the_filterable::jsonb)
    ON CONFLICT (tenant, session_key, id) DO NOTHING;
    IF FOUND THEN
        INSERT INTO holdfast.unindexed_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        VALUES (the_tenant, the_agent, session.key, session.epoch, session.seq, session.seq);
        RETURN QUERY SELECT 1, session.epoch, session.seq, NULL::timestamptz;
        RETURN;
    END IF;

    -- A retry: give the number back, and compare.
    UPDATE holdfast.sessions s SET seq = s.seq - 1
    WHERE s.tenant = the_tenant AND s.id = the_session;
    SELECT * INTO stored FROM holdfast.events e
    WHERE e.tenant = the_tenant AND e.session_key = session.key AND e.id = the_id;
    IF NOT holdfast.is_same_event(stored, the_agent, the_type, the_run, the_body) THEN
        PERFORM holdfast.fail(
            'HF001', the_session, jsonb_build_object('kind', 'event', 'key', the_id));
    END IF;
    RETURN QUERY SELECT 1, stored.epoch, stored.seq, stored.occurred_at;
END
$$;

-- Append a batch to sessions that are all new, as tasks of their own contexts have them: set by set instead of
-- session by session. Nothing is appended, and false returned, if one of them was made meanwhile.
CREATE OR REPLACE FUNCTION holdfast.store_first_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[], the_filterables text[]
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    wanted bigint;
    made text[];
BEGIN
    WITH given AS (
        SELECT i.session, count(*) AS events, (array_agg(i.agent ORDER BY i.at))[1] AS agent
        FROM unnest(the_sessions, the_agents) WITH ORDINALITY AS i (session, agent, at)
        GROUP BY i.session
    ), inserted AS (
        INSERT INTO holdfast.sessions (tenant, id, agent, started_at, seq)
        SELECT the_tenant, g.session, g.agent, holdfast.now(), g.events FROM given g
        ORDER BY g.session COLLATE "C"
        -- A session that is there is locked, and not changed: all are locked in the order of their ids.
        ON CONFLICT (tenant, id) DO UPDATE SET seq = excluded.seq WHERE false RETURNING id
    )
    SELECT (SELECT count(*) FROM given), array_agg(n.id) INTO wanted, made FROM inserted n;
    IF cardinality(made) IS DISTINCT FROM wanted THEN
        UPDATE holdfast.sessions s SET seq = 0 WHERE s.tenant = the_tenant AND s.id = ANY (made);
        RETURN false;
    END IF;
    WITH written AS (
        INSERT INTO holdfast.events
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
             subject, filterable)
        SELECT the_tenant, s.key, s.epoch, i.seq, i.id, i.agent, i.type, i.run, i.occurred_at, i.body,
               s.owner, coalesce(s.subject, s.owner), i.filterable::jsonb
        FROM (
            SELECT g.*, row_number() OVER (PARTITION BY g.session ORDER BY g.at) AS seq
            FROM unnest(the_sessions, the_agents, the_types, the_ids, the_runs, the_times,
                        the_bodies, the_filterables)
                WITH ORDINALITY
                AS g (session, agent, type, id, run, occurred_at, body, filterable, at)
            OFFSET 0
        ) i
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.sessions n
            WHERE n.tenant = the_tenant AND n.id BETWEEN i.session AND i.session
            ORDER BY n.id LIMIT 1
        ) s
        RETURNING agent, session_key, epoch, seq
    )
    INSERT INTO holdfast.unindexed_events
        (tenant, agent, session_key, epoch, first_seq, last_seq)
    -- In ranges that can be indexed one at a time, however many events there are.
    SELECT the_tenant, w.agent, w.session_key, w.epoch, min(w.seq), max(w.seq)
    FROM written w GROUP BY w.agent, w.session_key, w.epoch, w.seq / 500;
    RETURN true;
END
$$;

-- Append a batch that spans sessions, all or nothing. They are locked in the order of their ids, so
-- that two batches never wait for each other.
CREATE OR REPLACE FUNCTION holdfast.store_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[], the_filterables text[]
) RETURNS TABLE (place int, epoch int, seq bigint, first timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    part record;
BEGIN
    IF NOT EXISTS (
        SELECT FROM unnest(the_sessions) AS i (session)
        CROSS JOIN LATERAL (
            SELECT s.id FROM holdfast.sessions s
            WHERE s.tenant = the_tenant AND s.id BETWEEN i.session AND i.session
            ORDER BY s.id LIMIT 1
        ) s
    ) AND holdfast.store_first_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        the_filterables)
    THEN
        RETURN QUERY
        SELECT i.at::int, 1, row_number() OVER (PARTITION BY i.session ORDER BY i.at),
               NULL::timestamptz
        FROM unnest(the_sessions) WITH ORDINALITY AS i (session, at);
        RETURN;
    END IF;
    FOR part IN
        SELECT i.session, array_agg(i.at::int ORDER BY i.at) AS places,
               array_agg(i.agent ORDER BY i.at) AS agents, array_agg(i.type ORDER BY i.at) AS types,
               array_agg(i.id ORDER BY i.at) AS ids, array_agg(i.run ORDER BY i.at) AS runs,
               array_agg(i.occurred_at ORDER BY i.at) AS times,
               array_agg(i.body ORDER BY i.at) AS bodies,
               array_agg(i.filterable ORDER BY i.at) AS filterables
        FROM unnest(the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
                    the_filterables)
            WITH ORDINALITY AS i (session, agent, type, id, run, occurred_at, body, filterable, at)
        GROUP BY i.session ORDER BY i.session COLLATE "C"
    LOOP
        RETURN QUERY
        SELECT part.places[a.place], a.epoch, a.seq, a.first
        FROM holdfast.store_session_events(
            the_tenant, part.session, part.agents, part.types, part.ids, part.runs, part.times,
            part.bodies, part.filterables) a;
    END LOOP;
END
$$;

-- Keep vectors of events that are there; all of a tenant have one dimension.
CREATE OR REPLACE FUNCTION holdfast.keep_event_vectors(
    the_tenant text, the_sessions text[], the_ids text[], the_numbers real[], the_dimension int
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    have int;
BEGIN
    INSERT INTO holdfast.event_dimensions (tenant, dimension) VALUES (the_tenant, the_dimension)
    ON CONFLICT DO NOTHING;
    SELECT d.dimension INTO have FROM holdfast.event_dimensions d WHERE d.tenant = the_tenant;
    IF have <> the_dimension THEN
        PERFORM holdfast.fail(
            'HF006', format('has dimension %s, but the log''s is %s', the_dimension, have),
            jsonb_build_object('field', 'embeddings[0]'));
    END IF;
    INSERT INTO holdfast.event_vectors (tenant, session_key, epoch, seq, agent, embedding)
    SELECT the_tenant, (e.stored).session_key, (e.stored).epoch, (e.stored).seq, (e.stored).agent,
           the_numbers[(e.at - 1) * the_dimension + 1 : e.at * the_dimension]::public.vector
    FROM holdfast.events_by_ids(the_tenant, ARRAY(
        SELECT s.key FROM unnest(the_sessions) WITH ORDINALITY AS i (session, at)
        JOIN holdfast.sessions s ON s.tenant = the_tenant AND s.id = i.session
        ORDER BY i.at), the_ids) e
    ON CONFLICT DO NOTHING;
END
$$;

-- Append a batch with the vectors of its events.
CREATE OR REPLACE FUNCTION holdfast.store_embedded_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[], the_filterables text[],
    the_numbers real[], the_dimension int
) RETURNS TABLE (place int, epoch int, seq bigint, first timestamptz)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY SELECT * FROM holdfast.store_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        the_filterables);
    PERFORM holdfast.keep_event_vectors(
        the_tenant, the_sessions, the_ids, the_numbers, the_dimension);
END
$$;

-- Append a batch and patch states, all or nothing; where every event is there already, no state is patched.
-- Of each patch its session, the object to merge, the keys that go as a JSON array, the window or NULL and the
-- expected version or NULL, and how many versions are kept or NULL. the_dimension is NULL for events without vectors. A patched state is a row
-- with its ordinal, negated, in place of the event's, and its new version as seq.
CREATE OR REPLACE FUNCTION holdfast.store_events_and_kept_states(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[], the_filterables text[],
    the_numbers real[], the_dimension int, patched text[], the_states text[], the_dropped text[],
    the_ttls double precision[], the_versions bigint[], the_kept int[]
) RETURNS TABLE (place int, epoch int, seq bigint, first timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    part record;
    known bigint := -1;
BEGIN
    -- Sessions before states, each in the order of their ids: two of these never wait for each other.
    FOR part IN
        SELECT i.session, min(i.agent) AS agent FROM unnest(the_sessions, the_agents) i (session, agent)
        GROUP BY i.session ORDER BY i.session COLLATE "C"
    LOOP
        PERFORM holdfast.lock_session(the_tenant, part.session, part.agent);
    END LOOP;
    IF cardinality(the_ids) > 0 THEN
        SELECT count(*) INTO known FROM unnest(the_sessions, the_ids) AS i (session, id)
        JOIN holdfast.sessions s ON s.tenant = the_tenant AND s.id = i.session
        JOIN holdfast.events e ON e.tenant = the_tenant AND e.session_key = s.key AND e.id = i.id;
        RETURN QUERY SELECT * FROM holdfast.store_events(
            the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times,
            the_bodies, the_filterables);
        IF the_dimension IS NOT NULL THEN
            PERFORM holdfast.keep_event_vectors(
                the_tenant, the_sessions, the_ids, the_numbers, the_dimension);
        END IF;
    END IF;
    IF known = cardinality(the_ids) THEN
        RETURN;
    END IF;
    FOR part IN
        SELECT * FROM unnest(patched, the_states, the_dropped, the_ttls, the_versions, the_kept)
            WITH ORDINALITY AS i (session, state, dropped, ttl, version, kept, at)
        ORDER BY i.session COLLATE "C"
    LOOP
        RETURN QUERY SELECT -part.at::int, 0, holdfast.put_state(
            the_tenant, part.session, part.state::jsonb, part.ttl,
            ARRAY(SELECT jsonb_array_elements_text(part.dropped::jsonb)), false, part.version,
            part.kept),
            NULL::timestamptz;
    END LOOP;
END
$$;

-- Remove what matches, after one place and up to another, from a session's log and from every index; the
-- ids that are gone, with their places. The counter of the session stays. Up to a place, the first row is
-- the place up to which it was done, and a tombstone covers what is still on its way. After a place, each
-- event leaves a tombstone if Redis ever had the session: a process that remembers it may look for it.
CREATE OR REPLACE FUNCTION holdfast.remove_events(
    the_tenant text, the_session text, the_agent text, the_run text, the_types text[],
    after_epoch int, after_seq bigint, until_epoch int, until_seq bigint
) RETURNS TABLE (id text, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
    ids text[];
    agents text[];
    epochs int[];
    seqs bigint[];
BEGIN
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF session.key IS NULL THEN
        RETURN;
    END IF;
    IF until_epoch IS NOT NULL THEN
        IF (session.epoch, session.seq) > (until_epoch, until_seq) THEN
            until_epoch := session.epoch;
            until_seq := session.seq;
        END IF;
        -- Whatever is still on its way and was written before now is cleared too.
        INSERT INTO holdfast.session_tombstones
            (tenant, session_key, agent, run, types, epoch, seq)
        VALUES (the_tenant, session.key, the_agent, the_run, the_types, until_epoch, until_seq);
        RETURN QUERY SELECT NULL::text, until_epoch, until_seq;
    END IF;
    IF num_nonnulls(the_agent, the_run, the_types, after_seq) = 0 THEN
        DELETE FROM holdfast.dead_letters d
        WHERE d.tenant = the_tenant AND d.session = the_session
            AND (until_epoch IS NULL OR (d.epoch, d.seq) <= (until_epoch, until_seq));
    END IF;
    WITH removed AS (
        DELETE FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND (e.epoch, e.seq) > (coalesce(after_epoch, 0), coalesce(after_seq, 0))
            AND (the_agent IS NULL OR e.agent = the_agent)
            AND (the_run IS NULL OR e.run = the_run)
            AND (the_types IS NULL OR e.type = ANY (the_types))
            AND (until_epoch IS NULL OR (e.epoch, e.seq) <= (until_epoch, until_seq))
        RETURNING e.id, e.agent, e.type, e.epoch, e.seq
    ), buried AS (
        INSERT INTO holdfast.session_tombstones
            (tenant, session_key, exact, agent, types, epoch, seq)
        SELECT the_tenant, session.key, true, r.agent, ARRAY[r.type], r.epoch, r.seq
        FROM removed r WHERE after_seq IS NOT NULL AND session.heat > 0
    ), unkept AS (
        DELETE FROM holdfast.event_vectors v USING removed r
        WHERE v.tenant = the_tenant AND v.session_key = session.key
            AND v.epoch = r.epoch AND v.seq = r.seq
    )
    SELECT array_agg(r.id), array_agg(r.agent), array_agg(r.epoch), array_agg(r.seq)
    INTO ids, agents, epochs, seqs
    FROM removed r;
    PERFORM holdfast.unindex_session(the_tenant, session.key, agents, epochs, seqs);
    RETURN QUERY SELECT * FROM unnest(ids, epochs, seqs);
END
$$;

-- Take events of a session, which are gone from its log, out of the index of each of their agents. Agents
-- are locked in the order of their names, so that two of these never wait for each other.
CREATE OR REPLACE FUNCTION holdfast.unindex_session(
    the_tenant text, the_session bigint, the_agents text[], the_epochs int[], the_seqs bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    part record;
BEGIN
    FOR part IN
        SELECT r.agent, array_agg(r.epoch) AS epochs, array_agg(r.seq) AS seqs
        FROM unnest(the_agents, the_epochs, the_seqs) AS r (agent, epoch, seq)
        GROUP BY r.agent ORDER BY r.agent COLLATE "C"
    LOOP
        PERFORM holdfast.unindex_events(
            holdfast.lock_event_agent(the_tenant, part.agent), the_session, part.epochs, part.seqs);
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.clear_events_until(
    the_tenant text, the_session text, the_agent text, the_run text, the_types text[],
    until_epoch int, until_seq bigint
) RETURNS TABLE (id text, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT * FROM holdfast.remove_events(
        the_tenant, the_session, the_agent, the_run, the_types, NULL, NULL, until_epoch,
        until_seq);
$$;

CREATE OR REPLACE FUNCTION holdfast.clear_events(
    the_tenant text, the_session text, the_agent text, the_run text, the_types text[]
) RETURNS bigint
LANGUAGE sql
AS $$
    SELECT count(id) FROM holdfast.clear_events_until(
        the_tenant, the_session, the_agent, the_run, the_types, NULL, NULL);
$$;

-- Delete a session with its log, its gaps and its dead letters; the ids that are gone, with their places,
-- then a row without an id if there was a session. The row of the session stays, empty, with its counter
-- and its subject, whose erasure still has to find what else is stored under its id.
CREATE OR REPLACE FUNCTION holdfast.delete_session(the_tenant text, the_session text)
RETURNS TABLE (id text, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
BEGIN
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF session.key IS NULL OR session.deleted_at IS NOT NULL THEN
        RETURN;
    END IF;
    IF session.hot THEN
        session := holdfast.take_back(session);
    END IF;
    DELETE FROM holdfast.session_tombstones t
    WHERE t.tenant = the_tenant AND t.session_key = session.key;
    DELETE FROM holdfast.session_gaps g
    WHERE g.tenant = the_tenant AND g.session_key = session.key;
    RETURN QUERY SELECT r.id, r.epoch, r.seq FROM holdfast.remove_events(
        the_tenant, the_session, NULL, NULL, NULL, NULL, NULL,
        CASE WHEN session.heat > 0 THEN session.epoch END, session.seq) r
    WHERE r.id IS NOT NULL;
    UPDATE holdfast.sessions s
    SET deleted_at = holdfast.now(), ended_at = NULL, metadata = '{}', agent = '', parent = NULL,
        parent_at = NULL
    WHERE s.tenant = the_tenant AND s.key = session.key;
    RETURN QUERY SELECT NULL::text, session.epoch, session.seq;
END
$$;

-- Give a session and the agents in it other ids: the prefix of both is replaced, and the_name is the
-- session's own id afterwards. Words are indexed again. Returns what became of it: moved; absent; hot,
-- while Redis numbers it; or taken, where the new id is in use.
CREATE OR REPLACE FUNCTION holdfast.move_session(
    the_tenant text, old_prefix text, the_session text, new_prefix text, the_name text
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    session holdfast.sessions;
    whose text := holdfast.owner_of(new_prefix);
    old_length int := length(old_prefix) + 1;
BEGIN
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = old_prefix || the_session FOR UPDATE;
    IF session.key IS NULL OR session.deleted_at IS NOT NULL THEN
        RETURN 'absent';
    ELSIF session.hot THEN
        RETURN 'hot';
    ELSIF EXISTS (
        SELECT FROM holdfast.sessions s
        WHERE s.tenant = the_tenant AND s.id = new_prefix || the_name
    ) THEN
        RETURN 'taken';
    END IF;
    PERFORM holdfast.unindex_session(
        the_tenant, session.key, array_agg(e.agent), array_agg(e.epoch), array_agg(e.seq))
    FROM holdfast.events e WHERE e.tenant = the_tenant AND e.session_key = session.key;
    UPDATE holdfast.events e
    SET agent = new_prefix || substr(e.agent, old_length), owner = whose,
        subject = coalesce(session.subject, whose)
    WHERE e.tenant = the_tenant AND e.session_key = session.key;
    UPDATE holdfast.event_vectors v SET agent = new_prefix || substr(v.agent, old_length)
    WHERE v.tenant = the_tenant AND v.session_key = session.key;
    UPDATE holdfast.session_tombstones t SET agent = new_prefix || substr(t.agent, old_length)
    WHERE t.tenant = the_tenant AND t.session_key = session.key AND t.agent IS NOT NULL;
    -- The queue of the index first: what leaves it goes to the queue of the embedder.
    DELETE FROM holdfast.unindexed_events u
    WHERE u.tenant = the_tenant AND u.session_key = session.key;
    UPDATE holdfast.unembedded_events u SET agent = new_prefix || substr(u.agent, old_length)
    WHERE u.tenant = the_tenant AND u.session_key = session.key;
    INSERT INTO holdfast.unindexed_events (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT e.tenant, e.agent, e.session_key, e.epoch, min(e.seq), max(e.seq)
    FROM (
        SELECT *, seq - row_number() OVER (PARTITION BY epoch ORDER BY seq) AS stretch
        FROM holdfast.events WHERE tenant = the_tenant AND session_key = session.key
    ) e
    GROUP BY e.tenant, e.agent, e.session_key, e.epoch, e.stretch, e.seq / 500;
    UPDATE holdfast.sessions s
    SET id = new_prefix || the_name, agent = new_prefix || substr(s.agent, old_length)
    WHERE s.tenant = the_tenant AND s.key = session.key;
    RETURN 'moved';
END
$$;
