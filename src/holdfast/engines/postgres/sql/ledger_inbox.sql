-- name: send
-- Store a message to a task.
SELECT holdfast.send_to_task($1, $2, $3, $4, $5, $6, $7, $8);

-- name: receive
-- Store the oldest message of a topic as a step; the step.
SELECT * FROM holdfast.receive_in_task($1, $2, $3, $4, $5, $6, $7, $8);
