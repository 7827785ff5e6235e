-- version: 3
-- A task as it was.

-- The change of state that a task was in after an event.
CREATE OR REPLACE FUNCTION holdfast.task_change_at(
    in_tenant text, in_id text, in_version bigint, in_state text, in_seq bigint
) RETURNS holdfast.task_events
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    move holdfast.task_events;
BEGIN
    IF in_seq >= in_version AND in_state IN ('completed', 'failed', 'canceled', 'rejected') THEN
        SELECT * INTO move FROM holdfast.task_events e
        WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq = in_version;
        RETURN move;
    END IF;
    SELECT * INTO move FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq <= in_seq
        AND e.kind = 'transition'
        AND (e.kind = 'request' OR (e.kind = 'transition' AND e.number > 1
            AND e.to_state NOT IN ('completed', 'failed', 'canceled', 'rejected')))
    ORDER BY e.seq DESC LIMIT 1;
    IF NOT FOUND THEN
        SELECT * INTO move FROM holdfast.task_events e
        WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq = 1;
    END IF;
    RETURN move;
END
$$;

-- The last request of some kinds in a part of a timeline.
CREATE OR REPLACE FUNCTION holdfast.task_request_between(
    in_tenant text, in_id text, in_after bigint, in_until bigint, in_requests text[]
) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT e.request FROM holdfast.task_events e
    WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.seq > in_after AND e.seq <= in_until
        AND e.kind = 'request' AND e.request = ANY (in_requests)
        AND (e.kind = 'request' OR (e.kind = 'transition' AND e.number > 1
            AND e.to_state NOT IN ('completed', 'failed', 'canceled', 'rejected')))
    ORDER BY e.seq DESC LIMIT 1
$$;

-- The chunks that the artifacts of a task were made of after an event, as task_artifacts has them.
CREATE OR REPLACE FUNCTION holdfast.task_artifacts_at(in_tenant text, in_task_id text, in_seq bigint)
RETURNS TABLE (chunk_artifacts text[], chunk_times timestamptz[], chunk_bodies text[],
               chunk_appends boolean[], chunk_lasts boolean[], chunk_names text[],
               chunk_metadata text[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(c.artifact_id), array_agg(c.at), array_agg(c.body), array_agg(c.append),
           array_agg(c.last_chunk), array_agg(c.name), array_agg(c.metadata)
    FROM (
        SELECT e.artifact_id, e.at, e.body, e.append, e.last_chunk, e.name, e.metadata
        FROM holdfast.task_artifacts a
        -- Where it last began anew: usually where it did at last.
        CROSS JOIN LATERAL (
            SELECT CASE WHEN a.anew <= in_seq THEN a.anew ELSE (
                SELECT b.seq FROM holdfast.task_events b
                WHERE b.tenant = in_tenant AND b.task_id = a.task_id AND b.kind = 'artifact'
                    AND b.artifact_id = a.id AND b.seq <= in_seq AND NOT b.append
                ORDER BY b.seq DESC LIMIT 1) END AS anew
        ) s
        JOIN holdfast.task_events e
            ON e.tenant = in_tenant AND e.task_id = a.task_id AND e.kind = 'artifact'
            AND e.artifact_id = a.id AND e.seq >= s.anew AND e.seq <= in_seq
        WHERE a.tenant = in_tenant AND a.task_id = in_task_id AND a.begun <= in_seq
        ORDER BY a.begun, e.seq
    ) c
$$;

-- The last messages of a task until an event, as task_messages has them.
CREATE OR REPLACE FUNCTION holdfast.task_messages_at(
    in_tenant text, in_task_id text, in_last bigint, in_seq bigint
) RETURNS TABLE (message_ids text[], message_times timestamptz[], message_seqs bigint[],
                 message_bodies text[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(m.message_id), array_agg(m.written_at), array_agg(m.seq), array_agg(m.body)
    FROM (
        SELECT * FROM (
            SELECT e.message_id, e.written_at, e.seq, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
                AND e.seq <= in_seq
            ORDER BY e.seq DESC LIMIT in_last
        ) newest ORDER BY seq
    ) m
$$;
