-- name: resting
-- The messages of tasks that rest and are not copied: $2 agents, $3 how many tasks.
SELECT t.id, t.agent, t.owner, t.context_id, t.version, e.message_id, e.written_at, e.seq, e.body
FROM (
    SELECT * FROM holdfast.tasks i
    WHERE i.tenant = $1 AND NOT i.copied AND i.state NOT IN ('submitted', 'working')
        AND i.agent = ANY ($2::text[])
    ORDER BY i.updated_at, i.id LIMIT $3
) t
JOIN holdfast.task_events e ON e.tenant = t.tenant AND e.task_id = t.id AND e.kind = 'message'
ORDER BY t.updated_at, t.id, e.seq;

-- name: of_context
-- Of the last $5 messages of a context those whose tasks are not copied: $4 agents.
SELECT t.id, t.agent, t.owner, t.context_id, t.version, m.message_id, m.written_at, m.seq, m.body
FROM (
    SELECT e.* FROM holdfast.task_events e
    WHERE e.tenant = $1 AND e.kind = 'message' AND e.context_key = (
        SELECT c.key FROM holdfast.task_contexts c
        WHERE c.tenant = $1 AND c.owner = $2 AND c.id = $3)
    ORDER BY e.stored DESC LIMIT $5
) m
JOIN holdfast.tasks t ON t.tenant = m.tenant AND t.id = m.task_id
WHERE NOT t.copied AND t.agent = ANY ($4::text[])
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
