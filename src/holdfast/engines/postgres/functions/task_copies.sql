-- version: 1
-- Messages of tasks that are to be copied to session logs.

-- The messages of tasks that are neither queued nor at work and not copied, the longest unchanged first:
-- of so many tasks, and as many as fit so many bytes, but always of one. The queue is read in its order
-- and messages by their task. Without statistics a planner would sort the whole queue, and read all
-- messages of the tenant for each task.
CREATE OR REPLACE FUNCTION holdfast.resting_messages(
    in_tenant text, in_agents text[], in_limit bigint, in_bytes bigint
) RETURNS TABLE (id text, agent text, owner text, context_id text, version bigint,
                 message_id text, written_at timestamptz, seq bigint, body text)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_sort = off
SET enable_bitmapscan = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.id, t.agent, t.owner, t.context_id, t.version, e.message_id, e.written_at, e.seq, e.body
    FROM (
        SELECT i.*, row_number() OVER older AS place, sum(b.bytes) OVER older AS so_far
        FROM (
            SELECT * FROM holdfast.tasks i
            WHERE i.tenant = in_tenant AND NOT i.copied
                AND i.state NOT IN ('submitted', 'working') AND i.agent = ANY (in_agents)
            ORDER BY i.updated_at, i.id LIMIT in_limit
        ) i
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(octet_length(o.body)), 0) AS bytes FROM (
                SELECT m.body FROM holdfast.task_events m
                WHERE m.tenant = in_tenant AND m.task_id = i.id AND m.kind = 'message'
                ORDER BY m.seq OFFSET 0
            ) o
        ) b
        WINDOW older AS (ORDER BY i.updated_at, i.id)
    ) t
    CROSS JOIN LATERAL (
        SELECT m.message_id, m.written_at, m.seq, m.body FROM holdfast.task_events m
        WHERE m.tenant = in_tenant AND m.task_id = t.id AND m.kind = 'message'
        ORDER BY m.seq OFFSET 0
    ) e
    WHERE t.place = 1 OR t.so_far <= in_bytes
    ORDER BY t.updated_at, t.id, e.seq;
END
$$;
