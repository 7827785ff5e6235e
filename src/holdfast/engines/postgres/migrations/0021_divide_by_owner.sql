-- Sessions and events know whose they are, and whom they are about.

-- The owner in the stored id of a session; empty for a session that nobody owns.
CREATE FUNCTION holdfast.owner_of(the_id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN the_id ~ '^holdfast\.owner:[0-9]{1,3}:' THEN substr(
        the_id, 17 + length(split_part(the_id, ':', 2)), split_part(the_id, ':', 2)::int)
    ELSE ''
END;

-- What the ids of an owner's agents and sessions begin with.
CREATE FUNCTION holdfast.owner_prefix(the_owner text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'holdfast.owner:' || length(the_owner) || ':' || the_owner || ':';

-- subject: whom the session is about; NULL for its owner. Events have it from their session.
ALTER TABLE holdfast.sessions
    ADD COLUMN owner text COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (holdfast.owner_of(id)) STORED,
    ADD COLUMN subject text COLLATE "C";
ALTER TABLE holdfast.events
    ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';

-- Sessions of contexts that had an owner before sessions did: each is moved to the ids of its owner when
-- the stores are opened next, since a part of it may be in Redis. owner is NULL where several owners
-- used the same context: nobody may read such a session until an operator assigns it.
CREATE TABLE holdfast.session_moves (
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    PRIMARY KEY (tenant, session)
);
INSERT INTO holdfast.session_moves (tenant, session, owner)
SELECT c.tenant, c.id, CASE WHEN count(*) = 1 THEN min(c.owner) END
FROM holdfast.task_contexts c
GROUP BY c.tenant, c.id HAVING bool_or(c.owner <> '');

-- Give a session and the agents in it other ids: the prefix of both is replaced, and the_name is the
-- session's own id afterwards. Words are indexed again. Returns what became of it: moved; absent; hot,
-- while Redis numbers it; or taken, where the new id is in use.
CREATE FUNCTION holdfast.move_session(
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
    IF session.key IS NULL THEN
        RETURN 'absent';
    ELSIF session.hot THEN
        RETURN 'hot';
    ELSIF EXISTS (
        SELECT FROM holdfast.sessions s
        WHERE s.tenant = the_tenant AND s.id = new_prefix || the_name
    ) THEN
        RETURN 'taken';
    END IF;
    -- What is being indexed is indexed before it moves, or not at all.
    PERFORM FROM holdfast.event_totals t
    WHERE t.tenant = the_tenant AND t.agent IN (
        SELECT e.agent FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key)
    ORDER BY t.agent FOR UPDATE;

    WITH unindexed AS (
        DELETE FROM holdfast.indexed_events x USING holdfast.events e
        WHERE x.tenant = the_tenant AND x.session_key = session.key AND e.tenant = the_tenant
            AND e.session_key = session.key AND e.epoch = x.epoch AND e.seq = x.seq
        RETURNING e.agent, x.epoch, x.seq, x.length, x.lexemes
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
    )
    UPDATE holdfast.event_totals t
    SET documents = t.documents - x.documents, length = t.length - x.length
    FROM (SELECT agent, count(*) AS documents, sum(length) AS length
          FROM unindexed GROUP BY agent) x
    WHERE t.tenant = the_tenant AND t.agent = x.agent;

    UPDATE holdfast.events e
    SET agent = new_prefix || substr(e.agent, old_length), owner = whose, subject = whose
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

-- Append a batch to the log of one session, all or nothing, without a gap; ids that are there
-- already keep their place. Returns the places in the order of the input. Agents, types and runs
-- that are the same for all may be given once.
CREATE OR REPLACE FUNCTION holdfast.append_to_session(
    the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions := holdfast.lock_session(the_tenant, the_session, the_agents[1]);
    whom text := coalesce(session.subject, session.owner);
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
                (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
                 subject)
            SELECT the_tenant, session.key, session.epoch, session.seq + i.at,
                   i.id, the_agents[1], coalesce(i.type, the_types[1]),
                   coalesce(i.run, the_runs[1]), i.occurred_at, i.body, session.owner, whom
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
                    (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body,
                     owner, subject)
                SELECT the_tenant, session.key, session.epoch,
                       session.seq + row_number() OVER (ORDER BY i.at),
                       i.id, coalesce(i.agent, the_agents[1]), coalesce(i.type, the_types[1]),
                       coalesce(i.run, the_runs[1]), i.occurred_at, i.body, session.owner, whom
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

-- One event, the hot path of every turn without Redis.
CREATE OR REPLACE FUNCTION holdfast.append_event(
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
        (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner, subject)
    VALUES (the_tenant, session.key, session.epoch, session.seq, the_id, the_agent, the_type,
            the_run, the_time, the_body, session.owner, coalesce(session.subject, session.owner))
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

-- Store a batch of turns where Redis has put them, and tell what became of each, and in which epoch the
-- session is by now if that is ahead. Sessions are locked in the order of their ids.
CREATE OR REPLACE FUNCTION holdfast.flush_events(
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
        SELECT i.*, s.key, s.epoch AS now_epoch, s.seq AS now_seq, s.owner,
               coalesce(s.subject, s.owner) AS subject
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
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
             subject)
        SELECT the_tenant, j.key, j.epoch, j.seq, j.id, j.agent, j.type, j.run, j.occurred_at,
               j.body, j.owner, j.subject
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

-- Store the event of a dead letter after all: at its place if that is free, else at the end.
CREATE OR REPLACE FUNCTION holdfast.replay_letter(
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
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
             subject)
        VALUES (the_tenant, session.key, the_epoch, the_seq, the_id, the_agent, the_type, the_run,
                the_time, the_body, session.owner, coalesce(session.subject, session.owner));
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
