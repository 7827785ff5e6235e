-- name: submit_child
-- Queue a child of a task, or find the one that was submitted before.
SELECT * FROM holdfast.submit_child_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20);

-- name: children
-- The children of a task, by id, after one ($4).
SELECT r.*
FROM holdfast.tasks p
CROSS JOIN LATERAL (
    SELECT t.id FROM holdfast.tasks t
    WHERE t.tenant = $1 AND t.parent_id = p.id AND t.parent_id <> ''
        AND t.id > $4
    ORDER BY t.id LIMIT $5
) c
/* alone: */
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.linked_task_records l WHERE l.tenant = $1 AND l.id = c.id LIMIT 1
) r
/* end */
/* distributed: JOIN holdfast.linked_task_records r ON r.tenant = $1 AND r.id = c.id */
WHERE p.tenant = $1 AND p.id = $2 AND ($3::text IS NULL OR p.owner = $3)
ORDER BY r.id;

-- name: cancel_tree
-- Stop a task and all below it, or ask their workers to.
SELECT * FROM holdfast.cancel_task_tree(holdfast.acting($5, $1), $2, $3, $4);
