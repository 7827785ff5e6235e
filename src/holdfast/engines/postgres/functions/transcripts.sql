-- version: 2
-- Changes at the end of a transcript.

-- The newest message of an agent in a session; all NULL if there is none.
CREATE OR REPLACE FUNCTION holdfast.newest_message(
    the_tenant text, the_key bigint, the_agent text
) RETURNS holdfast.events
LANGUAGE sql STABLE
AS $$
    SELECT e.* FROM (
        SELECT * FROM holdfast.events i
        WHERE i.tenant = the_tenant AND i.session_key = the_key
        ORDER BY i.epoch DESC, i.seq DESC OFFSET 0
    ) e
    WHERE e.agent = the_agent AND e.type = 'message' LIMIT 1;
$$;

-- Remove the newest message of an agent in a session, and return it.
CREATE OR REPLACE FUNCTION holdfast.pop_message(
    the_tenant text, the_session text, the_agent text
) RETURNS TABLE (body text, id text, occurred_at timestamptz, seq bigint, epoch int, run text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    the_key bigint;
    newest holdfast.events;
BEGIN
    SELECT s.key INTO the_key FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    newest := holdfast.newest_message(the_tenant, the_key, the_agent);
    IF newest.id IS NOT NULL THEN
        PERFORM FROM holdfast.remove_events(
            the_tenant, the_session, the_agent, NULL, ARRAY['message'],
            newest.epoch, newest.seq - 1, NULL, NULL);
        RETURN QUERY SELECT newest.body, newest.id, newest.occurred_at, newest.seq, newest.epoch,
                            newest.run;
    END IF;
END
$$;

-- Put messages in the place of those of an agent after a number, all or nothing, if the newest message
-- has the expected number. The ids that are gone, with their places, then a row without an id: the place
-- of the newest message, 0 if there is none. What stands there already stays: that is a retry.
CREATE OR REPLACE FUNCTION holdfast.replace_messages(
    the_tenant text, the_session text, the_agent text, after_seq bigint, expected_seq bigint,
    the_ids text[], the_run text, the_times timestamptz[], the_bodies text[],
    the_filterables text[]
) RETURNS TABLE (id text, epoch int, seq bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    session holdfast.sessions;
    newest holdfast.events;
    after_epoch int;
    clash text;
    is_retry boolean;
BEGIN
    SELECT * INTO session FROM holdfast.sessions s
    WHERE s.tenant = the_tenant AND s.id = the_session FOR UPDATE;
    IF cardinality(the_ids) > 0 OR session.hot THEN
        session := holdfast.lock_session(the_tenant, the_session, the_agent);
    END IF;
    newest := holdfast.newest_message(the_tenant, session.key, the_agent);
    -- Numbers keep growing across epochs.
    SELECT e.epoch INTO after_epoch FROM holdfast.events e
    WHERE e.tenant = the_tenant AND e.session_key = session.key AND e.seq <= after_seq
    ORDER BY e.epoch DESC, e.seq DESC LIMIT 1;
    after_epoch := coalesce(after_epoch, 0);

    IF coalesce(newest.seq, 0) <> expected_seq THEN
        SELECT coalesce(array_agg(e.id ORDER BY e.epoch, e.seq), '{}') = the_ids
            AND coalesce(array_agg(e.body ORDER BY e.epoch, e.seq), '{}') = the_bodies
            AND coalesce(bool_and(e.run = the_run), true)
        INTO is_retry
        FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key
            AND (e.epoch, e.seq) > (after_epoch, after_seq)
            AND e.agent = the_agent AND e.type = 'message';
        IF NOT is_retry THEN
            PERFORM holdfast.fail(
                'HF003', 'the transcript has another end', jsonb_build_object(
                    'kind', 'transcript', 'key', the_session, 'expected', expected_seq,
                    'actual', coalesce(newest.seq, 0)));
        END IF;
        RETURN QUERY SELECT NULL::text, coalesce(newest.epoch, 0), coalesce(newest.seq, 0::bigint);
        RETURN;
    END IF;

    RETURN QUERY SELECT r.id, r.epoch, r.seq FROM holdfast.remove_events(
        the_tenant, the_session, the_agent, NULL, ARRAY['message'], after_epoch, after_seq,
        NULL, NULL) r;
    IF cardinality(the_ids) > 0 THEN
        SELECT (e.stored).id INTO clash
        FROM holdfast.events_by_ids(the_tenant, ARRAY[session.key], the_ids) e LIMIT 1;
        IF clash IS NOT NULL THEN
            PERFORM holdfast.fail(
                'HF001', the_session, jsonb_build_object('kind', 'event', 'key', clash));
        END IF;
        PERFORM FROM holdfast.store_session_events(
            the_tenant, the_session, ARRAY[the_agent], ARRAY['message'], the_ids, ARRAY[the_run],
            the_times, the_bodies, the_filterables);
    END IF;
    newest := holdfast.newest_message(the_tenant, session.key, the_agent);
    RETURN QUERY SELECT NULL::text, coalesce(newest.epoch, 0), coalesce(newest.seq, 0::bigint);
END
$$;
