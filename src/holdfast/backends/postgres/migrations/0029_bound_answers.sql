-- Reads tasks within so many bytes. The length of a text is known without reading the text, so that
-- what does not fit stays where it is.

-- How many bytes the artifacts of a task take, as they are now.
CREATE FUNCTION holdfast.task_artifact_bytes(in_tenant text, in_task_id text) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(sum(octet_length(e.body) + octet_length(e.metadata)), 0)::bigint
    FROM holdfast.task_artifacts a
    JOIN holdfast.task_events e
        ON e.tenant = a.tenant AND e.task_id = a.task_id AND e.kind = 'artifact'
        AND e.artifact_id = a.id AND e.seq >= a.anew
    WHERE a.tenant = in_tenant AND a.task_id = in_task_id
$$;

-- How many bytes of a page a task takes, with its last messages and, if wanted, its artifacts.
CREATE FUNCTION holdfast.task_page_bytes(
    in_tenant text, in_task_id text, in_last bigint, in_artifacts boolean
) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT octet_length(t.metadata)
        + coalesce((
            SELECT octet_length(e.body) FROM holdfast.task_events e
            WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq = t.status_seq LIMIT 1), 0)
        + coalesce((
            SELECT sum(octet_length(l.body)) FROM (
                SELECT e.body FROM holdfast.task_events e
                WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.kind = 'message'
                ORDER BY e.seq DESC LIMIT in_last
            ) l), 0)::bigint
        + CASE WHEN in_artifacts THEN holdfast.task_artifact_bytes(t.tenant, t.id) ELSE 0 END
    FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = in_task_id
$$;

-- The last messages of a task that fit, as task_messages has them, and whether some do not; the
-- newest always fits.
CREATE FUNCTION holdfast.task_messages_within(
    in_tenant text, in_task_id text, in_last bigint, in_bytes bigint
) RETURNS TABLE (message_ids text[], message_times timestamptz[], message_seqs bigint[],
                 message_bodies text[], messages_cut boolean)
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(m.message_id ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.written_at ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.seq ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.body ORDER BY m.seq) FILTER (WHERE m.fits),
           coalesce(bool_or(NOT m.fits), false)
    FROM (
        SELECT l.*, sum(octet_length(l.body)) OVER newer <= in_bytes
                   OR row_number() OVER newer = 1 AS fits
        FROM (
            SELECT e.message_id, e.written_at, e.seq, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
            ORDER BY e.seq DESC LIMIT in_last
        ) l
        WINDOW newer AS (ORDER BY l.seq DESC)
    ) m
$$;
