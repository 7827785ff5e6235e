-- name: changes
-- The next changes of state ($6) after a position ($3 to $5) that no open transaction can precede, and
-- whose tasks they are of. Without rows: where the feed ends now.
WITH seen AS (
    SELECT e.written_by, e.task_id, e.seq, e.at, e.actor, e.by_name, e.from_state, e.to_state
    FROM holdfast.task_events e
    WHERE e.tenant = $1 AND e.kind = 'transition' AND e.written_by IS NOT NULL
        AND (e.written_by, e.task_id, e.seq) > ($3::text::xid8, $4::text, $5::bigint)
        AND e.written_by < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY e.written_by, e.task_id, e.seq LIMIT $6
)
SELECT s.written_by::text::numeric::bigint AS place, s.task_id, s.seq, s.at, s.actor, s.by_name,
       s.from_state, s.to_state, t.owner, t.agent, t.context_id,
       t.id IS NOT NULL AND ($2::text IS NULL OR t.owner = $2) AS shown
FROM seen s
LEFT JOIN LATERAL (
    SELECT t.id, t.owner, t.agent, t.context_id FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.id = s.task_id LIMIT 1
) t ON true
ORDER BY s.written_by, s.task_id, s.seq;

-- name: end
-- The position before all changes that are yet to come.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::numeric::bigint /* distributed: + count(*) */ AS place
/* alone: */ WHERE $1 <> '' /* end */
/* distributed: FROM holdfast.task_events e WHERE e.tenant = $1 AND e.task_id = '' */;
