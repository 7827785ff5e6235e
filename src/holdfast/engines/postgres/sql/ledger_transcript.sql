-- name: resting
-- The messages of tasks that rest and are not copied: $2 agents, $3 how many tasks, and as many as
-- fit so many bytes ($4), but always one.
SELECT t.id, t.agent, t.owner, t.context_id, t.version, e.message_id, e.written_at, e.seq, e.body
FROM (
    SELECT i.*, row_number() OVER older AS place, sum(b.bytes) OVER older AS so_far
    FROM (
        SELECT * FROM holdfast.tasks i
        WHERE i.tenant = $1 AND NOT i.copied AND i.state NOT IN ('submitted', 'working')
            AND i.agent = ANY ($2::text[])
        ORDER BY i.updated_at, i.id LIMIT $3
    ) i
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(m.body)), 0) AS bytes FROM holdfast.task_events m
        WHERE m.tenant = $1 AND m.task_id = i.id AND m.kind = 'message'
    ) b
    WINDOW older AS (ORDER BY i.updated_at, i.id)
) t
JOIN holdfast.task_events e ON e.tenant = $1 AND e.task_id = t.id AND e.kind = 'message'
WHERE t.place = 1 OR t.so_far <= $4::bigint
ORDER BY t.updated_at, t.id, e.seq;

-- name: of_context
-- Of the last $5 messages of a context, as many as fit so many bytes ($6), those whose tasks are
-- not copied: $4 agents.
SELECT t.id, t.agent, t.owner, t.context_id, t.version, m.message_id, m.written_at, m.seq, m.body
FROM (
    SELECT l.*, row_number() OVER newer AS place, sum(octet_length(l.body)) OVER newer AS so_far
    FROM (
        SELECT e.* FROM holdfast.task_events e
        WHERE e.tenant = $1 AND e.kind = 'message' AND e.context_key = (
            SELECT c.key FROM holdfast.task_contexts c
            WHERE c.tenant = $1 AND c.owner = $2 AND c.id = $3)
        ORDER BY e.stored DESC LIMIT $5
    ) l
    WINDOW newer AS (ORDER BY l.stored DESC)
) m
JOIN holdfast.tasks t ON t.tenant = $1 AND t.id = m.task_id
WHERE NOT t.copied AND t.agent = ANY ($4::text[])
    AND (m.place = 1 OR m.so_far <= $6::bigint)
ORDER BY m.stored;

-- name: mark
-- Mark tasks that rest and are still at a version as copied, and return all that are there.
WITH given AS (
    SELECT * FROM unnest($2::text[], $3::bigint[]) AS g (id, version)
), marked AS (
    UPDATE holdfast.tasks t SET copied = true FROM given g
    WHERE t.tenant = $1 AND t.id = g.id AND t.version = g.version AND NOT t.copied
        AND t.state NOT IN ('submitted', 'working')
)
SELECT t.id FROM holdfast.tasks t WHERE t.tenant = $1 AND t.id = ANY ($2::text[]);
