-- version: 1
-- Forks of sessions.

-- Copy the log of a session up to a number, or all of it, into a new session, which goes on from there.
-- The same again finds the fork that is there. Words are indexed again; vectors that writers gave are copied.
CREATE OR REPLACE FUNCTION holdfast.fork_session(
    the_tenant text, the_session text, the_at bigint, the_into text
) RETURNS SETOF holdfast.sessions
LANGUAGE plpgsql
AS $$
DECLARE
    source holdfast.sessions;
    fork holdfast.sessions;
    until bigint;
BEGIN
    SELECT * INTO source FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session AND s.deleted_at IS NULL FOR UPDATE;
    IF source.key IS NULL THEN
        PERFORM holdfast.fail('HF002', 'there is no such session',
                              jsonb_build_object('kind', 'session', 'key', the_session));
    ELSIF the_at > source.seq THEN
        PERFORM holdfast.fail('HF006', format('the session ends at %s', source.seq),
                              jsonb_build_object('field', 'at'));
    END IF;
    until := coalesce(the_at, source.seq);
    INSERT INTO holdfast.sessions
        (tenant, id, agent, started_at, metadata, epoch, seq, subject, parent, parent_at)
    VALUES (the_tenant, the_into, source.agent, holdfast.now(), source.metadata, source.epoch, until,
            source.subject, the_session, until)
    ON CONFLICT DO NOTHING RETURNING * INTO fork;
    IF fork.key IS NULL THEN
        SELECT * INTO fork FROM holdfast.sessions s
        WHERE s.tenant = the_tenant AND s.id = the_into;
        IF fork.deleted_at IS NOT NULL OR fork.parent IS DISTINCT FROM the_session
            OR fork.parent_at <> coalesce(the_at, fork.parent_at)
        THEN
            PERFORM holdfast.fail('HF001', 'the id is in use, or was: fork into a new one',
                                  jsonb_build_object('kind', 'session', 'key', the_into));
        END IF;
        RETURN NEXT fork;
        RETURN;
    END IF;
    WITH written AS (
        INSERT INTO holdfast.events
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner, subject,
             filterable)
        SELECT the_tenant, fork.key, e.epoch, e.seq, e.id, e.agent, e.type, e.run, e.occurred_at,
               e.body, fork.owner, coalesce(fork.subject, fork.owner), e.filterable
        FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = source.key AND e.seq <= until
        RETURNING agent, epoch, seq
    )
    INSERT INTO holdfast.unindexed_events (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT the_tenant, w.agent, fork.key, w.epoch, min(w.seq), max(w.seq)
    FROM (
        SELECT *, seq - row_number() OVER (PARTITION BY agent, epoch ORDER BY seq) AS stretch
        FROM written
    ) w
    GROUP BY w.agent, w.epoch, w.stretch, w.seq / 500;
    INSERT INTO holdfast.event_vectors (tenant, session_key, epoch, seq, agent, embedding, model)
    SELECT the_tenant, fork.key, v.epoch, v.seq, v.agent, v.embedding, v.model
    FROM holdfast.event_vectors v
    WHERE v.tenant = the_tenant AND v.session_key = source.key AND v.seq <= until AND v.model = '';
    RETURN NEXT fork;
END
$$;
