-- name: skip_empty
-- Forget moves of sessions of which nothing is stored.
SELECT holdfast.skip_empty_moves();

-- name: any
-- Whether there is anything to move.
SELECT holdfast.has_moves();

-- name: pending
-- Sessions to move, in order, after one: $1 tenant, $2 session, $3 limit.
SELECT * FROM holdfast.moves_after($1, $2, $3);

-- name: move
-- Give a session and its agents other ids: $2 and $4 the prefixes, $3 and $5 the ids behind them.
SELECT holdfast.move_session($1, $2, $3, $4, $5);

-- name: done
-- A session is moved.
DELETE FROM holdfast.session_moves WHERE tenant = $1 AND session = $2;

-- name: unassigned
-- Sessions that wait for an operator, with their tenants: $1 limit.
SELECT * FROM holdfast.sessions_unassigned($1);
