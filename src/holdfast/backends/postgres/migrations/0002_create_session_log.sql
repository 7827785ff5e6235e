-- The session log: one truth for transcripts and episodes, and what recall looks it up by.

CREATE TABLE holdfast.sessions (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    -- Two long ids together would not fit an index entry, so events name their session by this.
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    agent text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    metadata text NOT NULL DEFAULT '{}',
    epoch int NOT NULL DEFAULT 1,
    seq bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sessions_by_key ON holdfast.sessions (tenant, key);
CREATE INDEX sessions_of_agent ON holdfast.sessions (tenant, agent, started_at DESC, id DESC);

CREATE TABLE holdfast.events (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch int NOT NULL,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    occurred_at timestamptz NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (tenant, session_key, epoch, seq)
);
CREATE UNIQUE INDEX events_by_id ON holdfast.events (tenant, session_key, id);
CREATE INDEX events_of_agent ON holdfast.events (tenant, agent, occurred_at);

-- Vectors of events, and the one dimension that they have in a tenant.
CREATE TABLE holdfast.event_vectors (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch int NOT NULL,
    seq bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    embedding public.vector NOT NULL,
    PRIMARY KEY (tenant, session_key, epoch, seq)
);
CREATE INDEX event_vectors_of_agent ON holdfast.event_vectors (tenant, agent);

CREATE TABLE holdfast.event_dimensions (
    tenant text COLLATE "C" PRIMARY KEY,
    dimension int NOT NULL
);

-- BM25 as an inverted index. An append only queues, one row for a whole batch; an indexer takes
-- from the queue.
CREATE TABLE holdfast.unindexed_events (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch int NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    PRIMARY KEY (tenant, agent, session_key, epoch, first_seq)
);

CREATE TABLE holdfast.indexed_events (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch int NOT NULL,
    seq bigint NOT NULL,
    length int NOT NULL,
    lexemes text[] COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session_key, epoch, seq)
);

CREATE TABLE holdfast.event_postings (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch int NOT NULL,
    seq bigint NOT NULL,
    times int NOT NULL,
    length int NOT NULL,
    PRIMARY KEY (tenant, agent, lexeme, session_key, epoch, seq) INCLUDE (times, length)
);

CREATE TABLE holdfast.event_totals (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    documents bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, agent)
) WITH (fillfactor = 70);

-- The session, made on first use, with its row locked: whoever holds it writes its log.
CREATE FUNCTION holdfast.lock_session(the_tenant text, the_session text, the_agent text)
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
    RETURN found;
END
$$;

-- Append a batch to the log of one session, all or nothing, without a gap; ids that are there
-- already keep their place. Returns the places in the order of the input. Agents, types and runs
-- that are the same for all may be given once.
CREATE FUNCTION holdfast.append_to_session(
    the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions := holdfast.lock_session(the_tenant, the_session, the_agents[1]);
    known text[];
    added bigint := cardinality(the_ids);
    clash text;
BEGIN
    IF session.seq > 0 THEN
        SELECT array_agg(e.id) INTO known FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key AND e.id = ANY (the_ids);
    END IF;

    IF known IS NOT NULL THEN
        added := added - cardinality(known);
        SELECT e.id INTO clash
        FROM holdfast.events e
        JOIN unnest(the_agents, the_types, the_ids, the_runs, the_times, the_bodies)
            AS i (agent, type, id, run, occurred_at, body) ON i.id = e.id
        WHERE e.tenant = the_tenant AND e.session_key = session.key AND e.id = ANY (known)
            AND (e.agent, e.type, e.run, e.occurred_at, e.body)
                IS DISTINCT FROM (
                    coalesce(i.agent, the_agents[1]), coalesce(i.type, the_types[1]),
                    coalesce(i.run, the_runs[1]), i.occurred_at, i.body)
        LIMIT 1;
        IF clash IS NOT NULL THEN
            PERFORM holdfast.fail(
                'HF001', the_session, jsonb_build_object('kind', 'event', 'key', clash));
        END IF;
    END IF;

    IF added > 0 THEN
        UPDATE holdfast.sessions s SET seq = s.seq + added
        WHERE s.tenant = the_tenant AND s.id = the_session;
        WITH written AS (
            INSERT INTO holdfast.events
                (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body)
            SELECT the_tenant, session.key, session.epoch,
                   session.seq + row_number() OVER (ORDER BY i.at),
                   i.id, coalesce(i.agent, the_agents[1]), coalesce(i.type, the_types[1]),
                   coalesce(i.run, the_runs[1]), i.occurred_at, i.body
            FROM unnest(the_agents, the_types, the_ids, the_runs, the_times, the_bodies)
                WITH ORDINALITY AS i (agent, type, id, run, occurred_at, body, at)
            WHERE known IS NULL OR i.id <> ALL (known)
            RETURNING agent, seq
        )
        INSERT INTO holdfast.unindexed_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        -- In ranges that can be indexed one at a time, however many events there are.
        SELECT the_tenant, w.agent, session.key, session.epoch, min(w.seq), max(w.seq)
        FROM written w GROUP BY w.agent, w.seq / 500;
    END IF;

    IF known IS NULL THEN
        RETURN QUERY SELECT n::int, session.epoch, session.seq + n
                     FROM generate_series(1, added) AS n;
    ELSE
        RETURN QUERY SELECT i.at::int, e.epoch, e.seq
                     FROM unnest(the_ids) WITH ORDINALITY AS i (id, at)
                     JOIN holdfast.events e ON e.tenant = the_tenant
                         AND e.session_key = session.key AND e.id = i.id;
    END IF;
END
$$;

-- Append a batch that spans sessions, all or nothing. They are locked in the order of their ids, so
-- that two batches never wait for each other.
CREATE FUNCTION holdfast.append_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    part record;
BEGIN
    FOR part IN
        SELECT i.session, array_agg(i.at::int ORDER BY i.at) AS places,
               array_agg(i.agent ORDER BY i.at) AS agents, array_agg(i.type ORDER BY i.at) AS types,
               array_agg(i.id ORDER BY i.at) AS ids, array_agg(i.run ORDER BY i.at) AS runs,
               array_agg(i.occurred_at ORDER BY i.at) AS times,
               array_agg(i.body ORDER BY i.at) AS bodies
        FROM unnest(the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies)
            WITH ORDINALITY AS i (session, agent, type, id, run, occurred_at, body, at)
        GROUP BY i.session ORDER BY i.session COLLATE "C"
    LOOP
        RETURN QUERY
        SELECT part.places[a.place], a.epoch, a.seq
        FROM holdfast.append_to_session(
            the_tenant, part.session, part.agents, part.types, part.ids, part.runs, part.times,
            part.bodies) a;
    END LOOP;
END
$$;

-- The same for one event, the hot path of every turn.
CREATE FUNCTION holdfast.append_event(
    the_tenant text, the_session text, the_agent text, the_type text, the_id text, the_run text,
    the_time timestamptz, the_body text
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
    stored holdfast.events;
BEGIN
    UPDATE holdfast.sessions s SET seq = s.seq + 1
    WHERE s.tenant = the_tenant AND s.id = the_session RETURNING * INTO session;
    IF session.key IS NULL THEN
        session := holdfast.lock_session(the_tenant, the_session, the_agent);
        UPDATE holdfast.sessions s SET seq = s.seq + 1
        WHERE s.tenant = the_tenant AND s.id = the_session RETURNING * INTO session;
    END IF;

    INSERT INTO holdfast.events
        (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body)
    VALUES (the_tenant, session.key, session.epoch, session.seq, the_id, the_agent, the_type,
            the_run, the_time, the_body)
    ON CONFLICT (tenant, session_key, id) DO NOTHING;
    IF FOUND THEN
        INSERT INTO holdfast.unindexed_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        VALUES (the_tenant, the_agent, session.key, session.epoch, session.seq, session.seq);
        RETURN QUERY SELECT 1, session.epoch, session.seq;
        RETURN;
    END IF;

    -- A retry: give the number back, and compare.
    UPDATE holdfast.sessions s SET seq = s.seq - 1
    WHERE s.tenant = the_tenant AND s.id = the_session;
    SELECT * INTO stored FROM holdfast.events e
    WHERE e.tenant = the_tenant AND e.session_key = session.key AND e.id = the_id;
    IF (stored.agent, stored.type, stored.run, stored.occurred_at, stored.body)
        IS DISTINCT FROM (the_agent, the_type, the_run, the_time, the_body) THEN
        PERFORM holdfast.fail(
            'HF001', the_session, jsonb_build_object('kind', 'event', 'key', the_id));
    END IF;
    RETURN QUERY SELECT 1, stored.epoch, stored.seq;
END
$$;

-- Keep vectors of events that are there; all of a tenant have one dimension.
CREATE FUNCTION holdfast.keep_event_vectors(
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
    SELECT e.tenant, e.session_key, e.epoch, e.seq, e.agent,
           the_numbers[(i.at - 1) * the_dimension + 1 : i.at * the_dimension]::public.vector
    FROM unnest(the_sessions, the_ids) WITH ORDINALITY AS i (session, id, at)
    JOIN holdfast.sessions s ON s.tenant = the_tenant AND s.id = i.session
    JOIN holdfast.events e ON e.tenant = s.tenant AND e.session_key = s.key AND e.id = i.id
    ON CONFLICT DO NOTHING;
END
$$;

-- Append a batch with the vectors of its events.
CREATE FUNCTION holdfast.append_embedded_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[],
    the_numbers real[], the_dimension int
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY SELECT * FROM holdfast.append_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies);
    PERFORM holdfast.keep_event_vectors(
        the_tenant, the_sessions, the_ids, the_numbers, the_dimension);
END
$$;

-- Take ranges of an agent's queue and index their events: only ranges that nobody else took, and
-- only events that are still there. Whoever holds the row of the totals changes the index.
CREATE FUNCTION holdfast.index_events(
    the_tenant text, the_agent text,
    range_keys bigint[], range_epochs int[], range_starts bigint[],
    event_ranges int[], event_seqs bigint[], event_lengths int[],
    posting_events int[], posting_lexemes text[], posting_times int[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    added bigint;
    words bigint;
BEGIN
    INSERT INTO holdfast.event_totals (tenant, agent) VALUES (the_tenant, the_agent)
    ON CONFLICT DO NOTHING;
    PERFORM FROM holdfast.event_totals t
    WHERE t.tenant = the_tenant AND t.agent = the_agent FOR UPDATE;

    WITH ranges AS (
        SELECT * FROM unnest(range_keys, range_epochs, range_starts) WITH ORDINALITY
            AS r (session_key, epoch, first_seq, at)
    ), taken AS (
        DELETE FROM holdfast.unindexed_events u USING ranges r
        WHERE u.tenant = the_tenant AND u.agent = the_agent AND u.session_key = r.session_key
            AND u.epoch = r.epoch AND u.first_seq = r.first_seq
        RETURNING r.session_key, r.epoch, r.at
    ), fresh AS (
        SELECT t.session_key, t.epoch, i.seq, i.length, i.at
        FROM taken t
        JOIN unnest(event_ranges, event_seqs, event_lengths) WITH ORDINALITY
            AS i (range, seq, length, at) ON i.range = t.at
        JOIN holdfast.events e ON e.tenant = the_tenant AND e.session_key = t.session_key
            AND e.epoch = t.epoch AND e.seq = i.seq
    ), postings AS (
        SELECT p.event, p.lexeme, p.times
        FROM unnest(posting_events, posting_lexemes, posting_times) AS p (event, lexeme, times)
    ), kept AS (
        INSERT INTO holdfast.indexed_events (tenant, session_key, epoch, seq, length, lexemes)
        SELECT the_tenant, f.session_key, f.epoch, f.seq, f.length,
               COALESCE(array_agg(p.lexeme) FILTER (WHERE p.lexeme IS NOT NULL), '{}')
        FROM fresh f LEFT JOIN postings p ON p.event = f.at
        GROUP BY f.session_key, f.epoch, f.seq, f.length
    ), posted AS (
        INSERT INTO holdfast.event_postings
            (tenant, agent, lexeme, session_key, epoch, seq, times, length)
        SELECT the_tenant, the_agent, p.lexeme, f.session_key, f.epoch, f.seq, p.times, f.length
        FROM fresh f JOIN postings p ON p.event = f.at
    )
    SELECT count(*), COALESCE(sum(f.length), 0) INTO added, words FROM fresh f;

    UPDATE holdfast.event_totals t
    SET documents = t.documents + added, length = t.length + words
    WHERE t.tenant = the_tenant AND t.agent = the_agent;
END
$$;

-- Remove what matches from a session's log and from every index; the counter of the session stays.
CREATE FUNCTION holdfast.clear_events(
    the_tenant text, the_session text, the_agent text, the_run text, the_types text[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    session holdfast.sessions;
    gone bigint;
BEGIN
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF session.key IS NULL THEN
        RETURN 0;
    END IF;
    -- What is being indexed must be indexed before it is removed, or not at all.
    INSERT INTO holdfast.event_totals (tenant, agent)
    SELECT DISTINCT e.tenant, e.agent FROM holdfast.events e
    WHERE e.tenant = the_tenant AND e.session_key = session.key
        AND (the_agent IS NULL OR e.agent = the_agent)
    ON CONFLICT DO NOTHING;
    PERFORM FROM holdfast.event_totals t
    WHERE t.tenant = the_tenant AND t.agent IN (
        SELECT e.agent FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND (the_agent IS NULL OR e.agent = the_agent))
    ORDER BY t.agent FOR UPDATE;

    WITH removed AS (
        DELETE FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND (the_agent IS NULL OR e.agent = the_agent)
            AND (the_run IS NULL OR e.run = the_run)
            AND (the_types IS NULL OR e.type = ANY (the_types))
        RETURNING e.agent, e.epoch, e.seq
    ), unkept AS (
        DELETE FROM holdfast.event_vectors v USING removed r
        WHERE v.tenant = the_tenant AND v.session_key = session.key
            AND v.epoch = r.epoch AND v.seq = r.seq
    ), unindexed AS (
        DELETE FROM holdfast.indexed_events x USING removed r
        WHERE x.tenant = the_tenant AND x.session_key = session.key
            AND x.epoch = r.epoch AND x.seq = r.seq
        RETURNING r.agent, x.epoch, x.seq, x.length, x.lexemes
    ), unposted AS (
        DELETE FROM holdfast.event_postings p
        USING unindexed x, unnest(x.lexemes) AS word (lexeme)
        WHERE p.tenant = the_tenant AND p.agent = x.agent AND p.lexeme = word.lexeme
            AND p.session_key = session.key AND p.epoch = x.epoch AND p.seq = x.seq
    ), less AS (
        UPDATE holdfast.event_totals t
        SET documents = t.documents - x.documents, length = t.length - x.length
        FROM (SELECT agent, count(*) AS documents, sum(length) AS length
              FROM unindexed GROUP BY agent) x
        WHERE t.tenant = the_tenant AND t.agent = x.agent
    )
    SELECT count(*) INTO gone FROM removed;
    RETURN gone;
END
$$;
