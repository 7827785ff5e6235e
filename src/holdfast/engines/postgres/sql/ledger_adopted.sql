-- name: adopt
-- Store a task that somebody else runs, with its reports ($7 to $18).
SELECT * FROM holdfast.adopt_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: record
-- Store reports ($5 to $16) if the task has the expected version ($4).
SELECT holdfast.record_of_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- name: delete
-- Remove a task with all it holds.
SELECT holdfast.delete_task($1, $2, $3);
