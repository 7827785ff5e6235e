-- The durable side of a session log whose newest turns are in Redis: who numbers a session, what was
-- cleared while it was on its way, what is lost, what could not be stored, and states as of a flush.

-- hot: Redis numbers the session now, up to reserved. heat tells the grants apart; while hot, seq is
-- how far the log is stored without a gap. overtaken: the numbering was taken back, and Redis may still
-- take the session for its own.
ALTER TABLE holdfast.sessions
    ADD COLUMN hot boolean NOT NULL DEFAULT false,
    ADD COLUMN overtaken boolean NOT NULL DEFAULT false,
    ADD COLUMN heat bigint NOT NULL DEFAULT 0,
    ADD COLUMN reserved bigint NOT NULL DEFAULT 0;
CREATE INDEX sessions_overtaken ON holdfast.sessions (tenant, id) WHERE overtaken;

-- What a clear covers, up to a place; or, exact, the one place that stays empty.
CREATE TABLE holdfast.session_tombstones (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    exact boolean NOT NULL DEFAULT false,
    agent text COLLATE "C",
    run text COLLATE "C",
    types text[] COLLATE "C",
    epoch int NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (tenant, session_key, number)
);

-- open: the turns may still arrive from Redis; otherwise they are lost.
CREATE TABLE holdfast.session_gaps (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch int NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    open boolean NOT NULL,
    found_at timestamptz NOT NULL DEFAULT holdfast.now(),
    PRIMARY KEY (tenant, session_key, epoch, from_seq)
);
CREATE INDEX session_gaps_open ON holdfast.session_gaps (tenant, session_key) WHERE open;

CREATE TABLE holdfast.dead_letters (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    epoch int NOT NULL,
    seq bigint NOT NULL,
    payload bytea NOT NULL,
    reason text NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT holdfast.now(),
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, session, epoch, seq, event)
);

-- Working states as of their last flush. A cleared one stays, empty, so that a late flush of an older
-- version never brings it back.
CREATE TABLE holdfast.state_snapshots (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    ttl_seconds double precision,
    expires_at timestamptz,
    cleared boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, session_id)
);

-- Take the numbering of a session back from Redis: the next epoch goes on after all that was
-- reserved. What Redis numbered and has not flushed may still arrive.
CREATE FUNCTION holdfast.take_back(session holdfast.sessions) RETURNS holdfast.sessions
LANGUAGE plpgsql
AS $$
DECLARE
    found holdfast.sessions;
BEGIN
    INSERT INTO holdfast.session_gaps (tenant, session_key, epoch, from_seq, to_seq, open)
    SELECT session.tenant, session.key, session.epoch, session.seq + 1, session.reserved, true
    WHERE session.reserved > session.seq
    ON CONFLICT DO NOTHING;
    UPDATE holdfast.sessions s
    SET hot = false, overtaken = true, heat = s.heat + 1, epoch = s.epoch + 1, seq = s.reserved
    WHERE s.tenant = session.tenant AND s.id = session.id
    RETURNING * INTO found;
    RETURN found;
END
$$;

-- The session, made on first use, with its row locked and its numbering here: whoever holds it
-- writes its log.
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
    IF found.hot THEN
        found := holdfast.take_back(found);
    END IF;
    RETURN found;
END
$$;

-- One event, the hot path of every turn without Redis.
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
    WHERE s.tenant = the_tenant AND s.id = the_session AND NOT s.hot RETURNING * INTO session;
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

-- Let Redis number a session. What Redis knows of it tells whether it has lost anything: a grant that
-- Redis does not know of may have been used up to the last number. A new one has no numbers: they are
-- reserved by who finds it in Redis, so that one that never got there is no loss.
CREATE FUNCTION holdfast.warm_session(
    the_tenant text, the_session text, the_agent text,
    known_epoch int, known_seq bigint, known_heat bigint
) RETURNS TABLE (epoch int, seq bigint, reserved bigint, heat bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
    last_seq bigint;
BEGIN
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF session.key IS NULL THEN
        IF the_agent IS NULL THEN
            RETURN;
        END IF;
        session := holdfast.lock_session(the_tenant, the_session, the_agent);
    END IF;
    last_seq := session.seq;
    IF session.hot AND known_heat IS DISTINCT FROM session.heat
        AND session.reserved > session.seq THEN
        INSERT INTO holdfast.session_gaps (tenant, session_key, epoch, from_seq, to_seq, open)
        VALUES (the_tenant, session.key, session.epoch, session.seq + 1, session.reserved, false)
        ON CONFLICT DO NOTHING;
        session.epoch := session.epoch + 1;
        last_seq := session.reserved;
    ELSIF known_epoch = session.epoch THEN
        last_seq := GREATEST(last_seq, known_seq);
    END IF;
    -- Redis is back without what was on its way when the numbering was taken back.
    UPDATE holdfast.session_gaps g SET open = false
    WHERE g.tenant = the_tenant AND g.session_key = session.key AND g.open
        AND (known_epoch IS NULL OR g.epoch > known_epoch);
    IF known_epoch IS NOT NULL THEN
        UPDATE holdfast.session_gaps g SET to_seq = LEAST(g.to_seq, known_seq)
        WHERE g.tenant = the_tenant AND g.session_key = session.key AND g.open
            AND g.epoch = known_epoch;
        DELETE FROM holdfast.session_gaps g
        WHERE g.tenant = the_tenant AND g.session_key = session.key AND g.open
            AND g.from_seq > g.to_seq;
    END IF;
    RETURN QUERY
    UPDATE holdfast.sessions s
    SET hot = true, overtaken = false, heat = s.heat + 1, epoch = session.epoch,
        -- What Redis has numbered in this epoch and not flushed is still to come.
        seq = CASE WHEN session.epoch = s.epoch THEN s.seq ELSE last_seq END,
        -- What was reserved in this epoch may have been used.
        reserved = GREATEST(
            CASE WHEN s.hot AND session.epoch = s.epoch THEN s.reserved ELSE 0 END, last_seq)
    WHERE s.tenant = the_tenant AND s.id = the_session
    RETURNING s.epoch, last_seq, s.reserved, s.heat;
END
$$;

-- Store a batch of turns where Redis has put them, and tell what became of each, and in which epoch the
-- session is by now if that is ahead. Sessions are locked in the order of their ids.
CREATE FUNCTION holdfast.flush_events(
    the_tenant text, the_sessions text[], the_epochs int[], the_seqs bigint[], the_agents text[],
    the_types text[], the_ids text[], the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, outcome text, ahead int)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO holdfast.sessions (tenant, id, agent, started_at)
    SELECT DISTINCT ON (i.session) the_tenant, i.session, i.agent, holdfast.now()
    FROM unnest(the_sessions, the_agents) WITH ORDINALITY AS i (session, agent, at)
    WHERE NOT EXISTS (
        SELECT FROM holdfast.sessions s WHERE s.tenant = the_tenant AND s.id = i.session)
    ORDER BY i.session, i.at
    ON CONFLICT DO NOTHING;
    PERFORM FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = ANY (the_sessions) ORDER BY s.id FOR UPDATE;

    RETURN QUERY
    WITH input AS MATERIALIZED (
        SELECT i.*, s.key, s.epoch AS now_epoch, s.seq AS now_seq
        FROM unnest(the_sessions, the_epochs, the_seqs, the_agents, the_types, the_ids, the_runs,
                    the_times, the_bodies) WITH ORDINALITY
            AS i (session, epoch, seq, agent, type, id, run, occurred_at, body, at)
        JOIN holdfast.sessions s ON s.tenant = the_tenant AND s.id = i.session
    ), judged AS MATERIALIZED (
        SELECT i.*,
            CASE
                WHEN EXISTS (
                    SELECT FROM holdfast.session_tombstones t
                    WHERE t.tenant = the_tenant AND t.session_key = i.key
                        AND CASE WHEN t.exact THEN (i.epoch, i.seq) = (t.epoch, t.seq)
                                 ELSE (i.epoch, i.seq) <= (t.epoch, t.seq) END
                        AND (t.agent IS NULL OR t.agent = i.agent)
                        AND (t.run IS NULL OR t.run = i.run)
                        AND (t.types IS NULL OR i.type = ANY (t.types))
                ) THEN 'covered'
                WHEN e.id IS NULL THEN 'new'
                WHEN (e.agent, e.type, e.run, e.occurred_at, e.body)
                    IS DISTINCT FROM (i.agent, i.type, i.run, i.occurred_at, i.body) THEN 'conflict'
                WHEN (e.epoch, e.seq) = (i.epoch, i.seq) THEN 'stored'
                ELSE 'known'
            END AS outcome
        FROM input i
        LEFT JOIN holdfast.events e
            ON e.tenant = the_tenant AND e.session_key = i.key AND e.id = i.id
    ), written AS (
        INSERT INTO holdfast.events
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body)
        SELECT the_tenant, j.key, j.epoch, j.seq, j.id, j.agent, j.type, j.run, j.occurred_at, j.body
        FROM judged j WHERE j.outcome = 'new' ORDER BY j.at
        RETURNING session_key, epoch, seq, agent
    ), queued AS (
        -- Ranges without a hole, so that what fills a hole later is in no range yet.
        INSERT INTO holdfast.unindexed_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        SELECT the_tenant, w.agent, w.session_key, w.epoch, min(w.seq), max(w.seq)
        FROM (
            SELECT *, seq - row_number() OVER (PARTITION BY session_key, epoch ORDER BY seq) AS run
            FROM written
        ) w
        GROUP BY w.agent, w.session_key, w.epoch, w.run
    ), doubled AS (
        INSERT INTO holdfast.session_tombstones (tenant, session_key, exact, epoch, seq)
        SELECT the_tenant, j.key, true, j.epoch, j.seq FROM judged j WHERE j.outcome = 'known'
    ), steps AS (
        SELECT j.key, j.epoch, j.seq,
               lag(j.seq, 1, j.now_seq) OVER (PARTITION BY j.key ORDER BY j.seq) AS before
        FROM judged j WHERE j.epoch = j.now_epoch AND j.seq > j.now_seq
    ), lost AS (
        INSERT INTO holdfast.session_gaps (tenant, session_key, epoch, from_seq, to_seq, open)
        SELECT the_tenant, s.key, s.epoch, s.before + 1, s.seq - 1, false
        FROM steps s WHERE s.seq > s.before + 1
        ON CONFLICT DO NOTHING
    ), advanced AS (
        UPDATE holdfast.sessions s SET seq = f.seq
        FROM (SELECT key, max(seq) AS seq FROM steps GROUP BY key) f
        WHERE s.tenant = the_tenant AND s.key = f.key
    ), arrived AS (
        UPDATE holdfast.session_gaps g SET from_seq = GREATEST(g.from_seq, l.seq + 1)
        FROM (SELECT key, epoch, max(seq) AS seq FROM judged WHERE epoch < now_epoch
              GROUP BY key, epoch) l
        WHERE g.tenant = the_tenant AND g.session_key = l.key AND g.epoch = l.epoch AND g.open
    )
    SELECT j.at::int, CASE j.outcome WHEN 'new' THEN 'stored' ELSE j.outcome END,
           CASE WHEN j.epoch < j.now_epoch THEN j.now_epoch ELSE 0 END
    FROM judged j ORDER BY j.at;

    DELETE FROM holdfast.session_gaps g USING holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = ANY (the_sessions) AND g.tenant = the_tenant
        AND g.session_key = s.key AND g.open AND g.from_seq > g.to_seq;
END
$$;

-- Put a turn among the dead letters: its place stays empty.
CREATE FUNCTION holdfast.bury_turn(
    the_tenant text, the_letter text, the_session text, the_event text, the_epoch int,
    the_seq bigint, the_payload bytea, the_reason text
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    session holdfast.sessions;
BEGIN
    INSERT INTO holdfast.dead_letters (tenant, id, session, event, epoch, seq, payload, reason)
    VALUES (the_tenant, the_letter, the_session, the_event, the_epoch, the_seq, the_payload,
            the_reason)
    ON CONFLICT DO NOTHING;
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF session.key IS NULL THEN
        RETURN;
    END IF;
    -- An event that stands there already keeps its place.
    INSERT INTO holdfast.session_tombstones (tenant, session_key, exact, epoch, seq)
    SELECT the_tenant, session.key, true, the_epoch, the_seq
    WHERE NOT EXISTS (
        SELECT FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND e.epoch = the_epoch AND e.seq = the_seq);
    IF session.epoch = the_epoch AND session.seq < the_seq THEN
        INSERT INTO holdfast.session_gaps (tenant, session_key, epoch, from_seq, to_seq, open)
        SELECT the_tenant, session.key, the_epoch, session.seq + 1, the_seq - 1, false
        WHERE the_seq > session.seq + 1
        ON CONFLICT DO NOTHING;
        UPDATE holdfast.sessions s SET seq = the_seq
        WHERE s.tenant = the_tenant AND s.key = session.key;
    END IF;
END
$$;

-- Store the event of a dead letter after all: at its place if that is free, else at the end.
CREATE FUNCTION holdfast.replay_letter(
    the_tenant text, the_letter text, the_session text, the_epoch int, the_seq bigint,
    the_agent text, the_type text, the_id text, the_run text, the_time timestamptz, the_body text
) RETURNS TABLE (epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
BEGIN
    DELETE FROM holdfast.dead_letters d WHERE d.tenant = the_tenant AND d.id = the_letter;
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF002', 'no such letter',
            jsonb_build_object('kind', 'dead letter', 'key', the_letter));
    END IF;
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF session.key IS NOT NULL AND NOT EXISTS (
        SELECT FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND (e.id = the_id OR (e.epoch, e.seq) = (the_epoch, the_seq))
    ) THEN
        DELETE FROM holdfast.session_tombstones t
        WHERE t.tenant = the_tenant AND t.session_key = session.key AND t.exact
            AND (t.epoch, t.seq) = (the_epoch, the_seq);
        INSERT INTO holdfast.events
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body)
        VALUES (the_tenant, session.key, the_epoch, the_seq, the_id, the_agent, the_type, the_run,
                the_time, the_body);
        INSERT INTO holdfast.unindexed_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        VALUES (the_tenant, the_agent, session.key, the_epoch, the_seq, the_seq);
        RETURN QUERY SELECT the_epoch, the_seq;
    ELSE
        RETURN QUERY SELECT a.epoch, a.seq FROM holdfast.append_event(
            the_tenant, the_session, the_agent, the_type, the_id, the_run, the_time, the_body) a;
    END IF;
END
$$;

-- Remove what matches, up to a place or all, from a session's log and from every index; the ids that
-- are gone, with their places. The counter of the session stays. With a place, the first row is the
-- place up to which it was done, and a tombstone covers what is still on its way.
CREATE FUNCTION holdfast.clear_events_until(
    the_tenant text, the_session text, the_agent text, the_run text, the_types text[],
    until_epoch int, until_seq bigint
) RETURNS TABLE (id text, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
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
    IF num_nonnulls(the_agent, the_run, the_types) = 0 THEN
        DELETE FROM holdfast.dead_letters d
        WHERE d.tenant = the_tenant AND d.session = the_session
            AND (until_epoch IS NULL OR (d.epoch, d.seq) <= (until_epoch, until_seq));
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

    RETURN QUERY
    WITH removed AS (
        DELETE FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND (the_agent IS NULL OR e.agent = the_agent)
            AND (the_run IS NULL OR e.run = the_run)
            AND (the_types IS NULL OR e.type = ANY (the_types))
            AND (until_epoch IS NULL OR (e.epoch, e.seq) <= (until_epoch, until_seq))
        RETURNING e.id, e.agent, e.epoch, e.seq
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
    ), fewer AS (
        SELECT x.agent, word.lexeme, count(*) AS documents
        FROM unindexed x, unnest(x.lexemes) AS word (lexeme) GROUP BY x.agent, word.lexeme
    ), rarer AS (
        UPDATE holdfast.event_lexemes l SET documents = l.documents - f.documents
        FROM fewer f
        WHERE l.tenant = the_tenant AND l.agent = f.agent AND l.lexeme = f.lexeme
            AND l.documents > f.documents
    ), forgotten AS (
        DELETE FROM holdfast.event_lexemes l USING fewer f
        WHERE l.tenant = the_tenant AND l.agent = f.agent AND l.lexeme = f.lexeme
            AND l.documents <= f.documents
    ), less AS (
        UPDATE holdfast.event_totals t
        SET documents = t.documents - x.documents, length = t.length - x.length
        FROM (SELECT agent, count(*) AS documents, sum(length) AS length
              FROM unindexed GROUP BY agent) x
        WHERE t.tenant = the_tenant AND t.agent = x.agent
    )
    SELECT r.id, r.epoch, r.seq FROM removed r;
END
$$;

CREATE FUNCTION holdfast.clear_events(
    the_tenant text, the_session text, the_agent text, the_run text, the_types text[]
) RETURNS bigint
LANGUAGE sql
AS $$
    SELECT count(id) FROM holdfast.clear_events_until(
        the_tenant, the_session, the_agent, the_run, the_types, NULL, NULL);
$$;

-- Redis lets a session go that rests, with everything flushed; not if there is a newer grant. Then no
-- tombstone is needed any more, unless something may still arrive.
CREATE FUNCTION holdfast.cool_session(the_tenant text, the_session text, the_heat bigint)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    session holdfast.sessions;
BEGIN
    UPDATE holdfast.sessions s SET hot = false
    WHERE s.tenant = the_tenant AND s.id = the_session AND s.heat = the_heat AND s.hot
    RETURNING * INTO session;
    IF session.key IS NULL THEN
        RETURN false;
    END IF;
    DELETE FROM holdfast.session_tombstones t
    WHERE t.tenant = the_tenant AND t.session_key = session.key AND NOT EXISTS (
        SELECT FROM holdfast.session_gaps g
        WHERE g.tenant = the_tenant AND g.session_key = session.key AND g.open);
    RETURN true;
END
$$;
