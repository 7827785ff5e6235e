-- What tells a session that was restored whole from one that lost something with Redis: who may have
-- acknowledged what is not stored yet.

-- writers: the processes that may have acknowledged events of this grant before they were stored; '*' for
-- unknown ones. Who acknowledges at level committed is not among them.
ALTER TABLE holdfast.sessions
    ADD COLUMN writers text[] COLLATE "C" NOT NULL DEFAULT '{}';
UPDATE holdfast.sessions SET writers = '{*}' WHERE hot;
CREATE INDEX sessions_by_writer ON holdfast.sessions USING gin (writers) WHERE writers <> '{}';

-- writers: who may have acknowledged something in this range; when all of them have said that they miss
-- nothing, nothing was lost. NULL: some of it was numbered, and is lost.
ALTER TABLE holdfast.session_gaps ADD COLUMN writers text[] COLLATE "C";
UPDATE holdfast.session_gaps SET writers = '{*}';
CREATE INDEX session_gaps_by_writer ON holdfast.session_gaps USING gin (writers)
WHERE writers <> '{}';

-- lineage: which life of the state in Redis this version is of. A later version of the same lineage
-- includes all writes before it; one of another lineage does not. base: the version here that the lineage
-- began from: one that began from an older version than the last is not saved over it. stamp: the last
-- write put aside that it includes. saved_at: as of when it is. writers: who may have acknowledged writes
-- that were not saved.
ALTER TABLE holdfast.state_snapshots
    ADD COLUMN lineage bigint NOT NULL DEFAULT 0,
    ADD COLUMN base bigint NOT NULL DEFAULT 0,
    ADD COLUMN stamp bigint NOT NULL DEFAULT 0,
    ADD COLUMN saved_at timestamptz NOT NULL DEFAULT holdfast.now(),
    ADD COLUMN writers text[] COLLATE "C" NOT NULL DEFAULT '{}';
CREATE INDEX state_snapshots_by_writer ON holdfast.state_snapshots USING gin (writers)
WHERE writers <> '{}';

-- Writers with one more; beyond sixteen they are not told apart.
CREATE FUNCTION holdfast.with_writer(the_writers text[], the_writer text) RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN the_writer = '' OR the_writers && ARRAY[the_writer, '*'] THEN the_writers
        WHEN cardinality(the_writers) >= 16 THEN ARRAY['*']
        ELSE the_writers || the_writer
    END;
$$;

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
    IF session.key IS NULL THEN
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
