-- version: 1
-- Single events of a session are deleted.

-- Delete events by their ids, from the log of a session and from every index; the ids that are gone, with
-- their places. Their numbers are not used again. As in remove_events, each event leaves a tombstone if Redis
-- ever had the session.
CREATE OR REPLACE FUNCTION holdfast.delete_events(the_tenant text, the_session text, the_ids text[])
RETURNS TABLE (id text, epoch int, seq bigint)
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
    DELETE FROM holdfast.dead_letters d
    WHERE d.tenant = the_tenant AND d.session = the_session AND d.event = ANY (the_ids);
    WITH removed AS (
        DELETE FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = session.key AND e.id = ANY (the_ids)
        RETURNING e.id, e.agent, e.type, e.epoch, e.seq
    ), buried AS (
        INSERT INTO holdfast.session_tombstones
            (tenant, session_key, exact, agent, types, epoch, seq)
        SELECT the_tenant, session.key, true, r.agent, ARRAY[r.type], r.epoch, r.seq
        FROM removed r WHERE session.heat > 0
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
