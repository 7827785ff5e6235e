-- version: 6
-- Sessions that Redis numbers, and what it flushes.

-- Writers with one more; beyond sixteen they are not told apart.
CREATE OR REPLACE FUNCTION holdfast.with_writer(the_writers text[], the_writer text) RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN the_writer = '' OR the_writers && ARRAY[the_writer, '*'] THEN the_writers
        WHEN cardinality(the_writers) >= 16 THEN ARRAY['*']
        ELSE the_writers || the_writer
    END;
$$;

-- Let Redis number a session. What Redis knows of it tells whether it has lost anything: a grant that
-- Redis does not know of may have been used by its writers, up to the last number. A new one has no
-- numbers: they are reserved by who finds it in Redis, so that one that never got there is no loss.
CREATE OR REPLACE FUNCTION holdfast.warm_session(
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
    IF session.key IS NULL OR session.deleted_at IS NOT NULL THEN
        IF the_agent IS NULL THEN
            RETURN;
        END IF;
        session := holdfast.lock_session(the_tenant, the_session, the_agent);
    END IF;
    last_seq := session.seq;
    IF session.hot AND known_heat IS DISTINCT FROM session.heat
        AND session.reserved > session.seq THEN
        IF session.writers <> '{}' THEN
            INSERT INTO holdfast.session_gaps
                (tenant, session_key, epoch, from_seq, to_seq, open, writers)
            VALUES (the_tenant, session.key, session.epoch, session.seq + 1, session.reserved,
                    false, session.writers)
            ON CONFLICT DO NOTHING;
        END IF;
        session.epoch := session.epoch + 1;
        last_seq := session.reserved;
    ELSIF known_epoch = session.epoch THEN
        last_seq := GREATEST(last_seq, known_seq);
    END IF;
    -- Redis is back without what was on its way when the numbering was taken back.
    UPDATE holdfast.session_gaps g SET open = false
    WHERE g.tenant = the_tenant AND g.session_key = session.key AND g.open
        AND (known_epoch IS NULL OR g.epoch > known_epoch);
    DELETE FROM holdfast.session_gaps g
    WHERE g.tenant = the_tenant AND g.session_key = session.key AND NOT g.open
        AND g.writers = '{}';
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
            CASE WHEN s.hot AND session.epoch = s.epoch THEN s.reserved ELSE 0 END, last_seq),
        writers = CASE WHEN s.hot AND session.epoch = s.epoch THEN s.writers ELSE '{}' END
    WHERE s.tenant = the_tenant AND s.id = the_session
    RETURNING s.epoch, last_seq, s.reserved, s.heat;
END
$$;

-- Store a batch of turns at their positions in Redis. Returns the outcome of each, and the epoch of its
-- session if that is ahead of the turn's. Sessions are locked in the order of their ids. An awaited turn, whose
-- writer acknowledges it once it is stored, is not stored in an epoch that is over, since later events may be
-- acknowledged already: its outcome is 'behind', as is that of the awaited turns of its session after it.
CREATE OR REPLACE FUNCTION holdfast.store_turns(
    the_tenant text, the_sessions text[], the_epochs int[], the_seqs bigint[], the_agents text[],
    the_types text[], the_ids text[], the_runs text[], the_times timestamptz[], the_bodies text[],
    the_filterables text[], the_awaited boolean[]
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
               coalesce(s.subject, s.owner) AS subject,
               bool_or(i.awaited AND i.epoch < s.epoch) OVER (PARTITION BY s.key ORDER BY i.at)
                   AND i.awaited AS is_behind
        FROM unnest(the_sessions, the_epochs, the_seqs, the_agents, the_types, the_ids, the_runs,
                    the_times, the_bodies, the_filterables, the_awaited) WITH ORDINALITY
            AS i (session, epoch, seq, agent, type, id, run, occurred_at, body, filterable, awaited,
                  at)
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
                WHEN e.at IS NULL AND i.is_behind THEN 'behind'
                WHEN e.at IS NULL THEN 'new'
                WHEN NOT holdfast.is_same_event(e.stored, i.agent, i.type, i.run, i.body)
                    THEN 'conflict'
                WHEN ((e.stored).epoch, (e.stored).seq) = (i.epoch, i.seq) THEN 'stored'
                ELSE 'known'
            END AS outcome
        FROM input i
        LEFT JOIN holdfast.events_by_ids(
            the_tenant, ARRAY(SELECT key FROM input ORDER BY at), the_ids) e ON e.at = i.at
    ), written AS (
        INSERT INTO holdfast.events
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
             subject, filterable)
        SELECT the_tenant, j.key, j.epoch, j.seq, j.id, j.agent, j.type, j.run, j.occurred_at,
               j.body, j.owner, j.subject, j.filterable::jsonb
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
CREATE OR REPLACE FUNCTION holdfast.bury_turn(
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
             subject, filterable)
        VALUES (the_tenant, session.key, the_epoch, the_seq, the_id, the_agent, the_type, the_run,
                the_time, the_body, session.owner, coalesce(session.subject, session.owner),
                holdfast.filterable_of(the_body));
        INSERT INTO holdfast.unindexed_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        VALUES (the_tenant, the_agent, session.key, the_epoch, the_seq, the_seq);
        RETURN QUERY SELECT the_epoch, the_seq;
    ELSE
        RETURN QUERY SELECT a.epoch, a.seq FROM holdfast.store_event(
            the_tenant, the_session, the_agent, the_type, the_id, the_run, the_time, the_body,
            holdfast.filterable_of(the_body)::text) a;
    END IF;
END
$$;

-- Redis lets a session go that rests, with everything flushed; not if there is a newer grant. Then no
-- tombstone is needed any more, unless something may still arrive.
CREATE OR REPLACE FUNCTION holdfast.cool_session(the_tenant text, the_session text, the_heat bigint)
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
