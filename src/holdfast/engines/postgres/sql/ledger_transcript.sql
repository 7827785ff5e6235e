-- name: resting
-- The messages of tasks that rest and are not copied: $2 agents, $3 how many tasks, and as many as
-- fit so many bytes ($4), but always one.
SELECT * FROM holdfast.resting_messages($1, $2, $3, $4);

-- name: of_contexts
-- Of the last $5 messages of each context ($2 owners, $3 ids), as many as fit so many bytes ($6), those
-- whose tasks are not copied ($4 agents); and of a context where some do not fit, also the last one.
SELECT t.id, t.agent, t.owner, t.context_id, t.version, m.message_id, m.written_at, m.seq, m.body,
       m.cut, NOT t.copied AND t.agent = ANY ($4::text[]) AS wanted
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS c (owner, id, at)
CROSS JOIN LATERAL (
    SELECT f.*, bool_or(NOT f.fits) OVER () AS cut
    FROM (
        SELECT l.*, row_number() OVER newer = 1 AS last,
               row_number() OVER newer = 1
                   OR sum(octet_length(l.body)) OVER newer <= $6::bigint AS fits
        FROM (
            SELECT e.* FROM holdfast.task_events e
            WHERE e.tenant = $1 AND e.kind = 'message' AND e.context_key = (
                SELECT x.key FROM holdfast.task_contexts x
                WHERE x.tenant = $1 AND x.owner = c.owner AND x.id = c.id)
            ORDER BY e.stored DESC LIMIT $5
        ) l
        WINDOW newer AS (ORDER BY l.stored DESC)
    ) f
) m
JOIN holdfast.tasks t ON t.tenant = $1 AND t.id = m.task_id
WHERE m.fits AND (NOT t.copied AND t.agent = ANY ($4::text[]) OR m.cut AND m.last)
ORDER BY c.at, m.stored;

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
