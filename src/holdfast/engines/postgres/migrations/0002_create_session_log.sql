-- The session log: one truth for transcripts and episodes, and what recall looks it up by. How a
-- session is locked, one event is appended and events are cleared is in 0017: there Redis may number.

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

-- In how many of an agent's events a lexeme stands, and how often at most in one of them: never less
-- than that, since it stays when events are cleared.
CREATE TABLE holdfast.event_lexemes (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    documents bigint NOT NULL,
    most int NOT NULL,
    PRIMARY KEY (tenant, agent, lexeme)
) WITH (fillfactor = 70);

CREATE TABLE holdfast.event_totals (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    documents bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, agent)
) WITH (fillfactor = 70);

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
        IF known IS NULL AND cardinality(the_agents) = 1 THEN
            -- All of it new and one agent's, as batches mostly are: the places are known beforehand.
            INSERT INTO holdfast.events
                (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body)
            SELECT the_tenant, session.key, session.epoch, session.seq + i.at,
                   i.id, the_agents[1], coalesce(i.type, the_types[1]),
                   coalesce(i.run, the_runs[1]), i.occurred_at, i.body
            FROM unnest(the_types, the_ids, the_runs, the_times, the_bodies)
                WITH ORDINALITY AS i (type, id, run, occurred_at, body, at);
            INSERT INTO holdfast.unindexed_events
                (tenant, agent, session_key, epoch, first_seq, last_seq)
            SELECT the_tenant, the_agents[1], session.key, session.epoch,
                   GREATEST(500 * n, session.seq + 1), LEAST(500 * n + 499, session.seq + added)
            FROM generate_series((session.seq + 1) / 500, (session.seq + added) / 500) AS n;
        ELSE
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
-- only events that are still there. Whoever holds the row of the totals changes the index. What
-- belongs together is found by its place in the arrays: a planner that takes thousands of words for
-- ten would join them in nested loops.
CREATE FUNCTION holdfast.index_events(
    the_tenant text, the_agent text,
    range_keys bigint[], range_epochs int[], range_starts bigint[],
    event_ranges int[], event_seqs bigint[], event_lengths int[],
    posting_events int[], posting_lexemes text[], posting_times int[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    taken boolean[] := array_fill(false, ARRAY[cardinality(range_keys)]);
    place int;
    -- The session of each event; 0 for one that is not to be indexed.
    keys bigint[];
BEGIN
    INSERT INTO holdfast.event_totals (tenant, agent) VALUES (the_tenant, the_agent)
    ON CONFLICT DO NOTHING;
    PERFORM FROM holdfast.event_totals t
    WHERE t.tenant = the_tenant AND t.agent = the_agent FOR UPDATE;

    FOR place IN
        DELETE FROM holdfast.unindexed_events u
        USING unnest(range_keys, range_epochs, range_starts) WITH ORDINALITY
            AS r (session_key, epoch, first_seq, at)
        WHERE u.tenant = the_tenant AND u.agent = the_agent AND u.session_key = r.session_key
            AND u.epoch = r.epoch AND u.first_seq = r.first_seq
        RETURNING r.at
    LOOP
        taken[place] := true;
    END LOOP;
    SELECT array_agg(COALESCE(e.session_key, 0) ORDER BY i.at) INTO keys
    FROM unnest(event_ranges, event_seqs) WITH ORDINALITY AS i (range, seq, at)
    -- In the order of seq, which only the primary key has: without statistics every index looks good.
    LEFT JOIN LATERAL (
        SELECT session_key FROM holdfast.events
        WHERE tenant = the_tenant AND session_key = range_keys[i.range]
            AND epoch = range_epochs[i.range] AND seq BETWEEN i.seq AND i.seq AND taken[i.range]
        ORDER BY seq LIMIT 1
    ) e ON true;

    WITH words AS MATERIALIZED (
        SELECT * FROM unnest(posting_events, posting_lexemes, posting_times)
            AS p (event, lexeme, times)
        WHERE keys[p.event] > 0
    ), kept AS (
        INSERT INTO holdfast.indexed_events (tenant, session_key, epoch, seq, length, lexemes)
        SELECT the_tenant, keys[w.event], range_epochs[event_ranges[w.event]],
               event_seqs[w.event], event_lengths[w.event],
               COALESCE(array_agg(w.lexeme) FILTER (WHERE w.lexeme IS NOT NULL), '{}')
        FROM (
            SELECT event, lexeme FROM words
            -- A text may have no words.
            UNION ALL SELECT n, NULL FROM generate_series(1, cardinality(keys)) AS n
        ) w
        WHERE keys[w.event] > 0
        GROUP BY w.event
    ), posted AS (
        INSERT INTO holdfast.event_postings
            (tenant, agent, lexeme, session_key, epoch, seq, times, length)
        SELECT the_tenant, the_agent, w.lexeme, keys[w.event],
               range_epochs[event_ranges[w.event]], event_seqs[w.event], w.times,
               event_lengths[w.event]
        FROM words w
    )
    INSERT INTO holdfast.event_lexemes AS l (tenant, agent, lexeme, documents, most)
    SELECT the_tenant, the_agent, w.lexeme, count(*), max(w.times) FROM words w GROUP BY w.lexeme
    ON CONFLICT (tenant, agent, lexeme) DO UPDATE
    SET documents = l.documents + excluded.documents, most = GREATEST(l.most, excluded.most);

    UPDATE holdfast.event_totals t
    SET documents = t.documents + n.documents, length = t.length + n.length
    FROM (SELECT count(*) AS documents, COALESCE(sum(i.length), 0) AS length
          FROM unnest(keys, event_lengths) AS i (key, length) WHERE i.key > 0) n
    WHERE t.tenant = the_tenant AND t.agent = the_agent;
END
$$;
