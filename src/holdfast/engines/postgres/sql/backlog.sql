-- name: backlog
-- What waits of all tenants: tasks by state and agent ($1 agents that are named), up to $2 of each state.
SELECT * FROM holdfast.backlog($1, $2);
