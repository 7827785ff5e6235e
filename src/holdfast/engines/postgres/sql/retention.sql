-- name: sessions
-- Delete sessions that nobody has touched since $2: $1 tenant or NULL, $3 and $4 where to go on, $5 how many
-- to look at, $6 only count.
SELECT * FROM holdfast.retain_sessions($1, $2, $3, $4, $5, $6);

-- name: tasks
-- Delete tasks that ended before $2: $1 tenant or NULL, $3 how many, $4 only count.
SELECT holdfast.retain_tasks($1, $2, $3, $4);
