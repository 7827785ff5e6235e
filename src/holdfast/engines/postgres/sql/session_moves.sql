-- name: skip_empty
-- Forget moves of sessions of which nothing is stored.
DELETE FROM holdfast.session_moves m
WHERE NOT EXISTS (SELECT FROM holdfast.sessions s WHERE s.tenant = m.tenant AND s.id = m.session)
    AND NOT EXISTS (
        SELECT FROM holdfast.states s WHERE s.tenant = m.tenant AND s.session_id = m.session)
    AND NOT EXISTS (
        SELECT FROM holdfast.state_snapshots s
        WHERE s.tenant = m.tenant AND s.session_id = m.session)
    AND NOT EXISTS (
        SELECT FROM holdfast.state_asides s
        WHERE s.tenant = m.tenant AND s.session_id = m.session);

-- name: any
-- Whether there is anything to move.
SELECT EXISTS (SELECT FROM holdfast.session_moves);

-- name: pending
-- Sessions to move, in order, after one: $1 tenant, $2 session, $3 limit.
SELECT m.tenant, m.session, m.owner,
    EXISTS (
        SELECT FROM holdfast.sessions s
        WHERE s.tenant = m.tenant AND s.id = m.session AND s.hot
    ) OR EXISTS (
        SELECT FROM holdfast.state_snapshots s
        WHERE s.tenant = m.tenant AND s.session_id = m.session AND NOT s.cleared
    ) OR EXISTS (
        SELECT FROM holdfast.state_asides s
        WHERE s.tenant = m.tenant AND s.session_id = m.session
    ) AS needs_hot_store
FROM holdfast.session_moves m
WHERE (m.tenant, m.session) > ($1, $2) ORDER BY m.tenant, m.session LIMIT $3;

-- name: move
-- Give a session and its agents other ids: $2 and $4 the prefixes, $3 and $5 the ids behind them.
SELECT holdfast.move_session($1, $2, $3, $4, $5);

-- name: done
-- A session is moved.
DELETE FROM holdfast.session_moves WHERE tenant = $1 AND session = $2;

-- name: unassigned
-- Sessions that wait for an operator, with their tenants: $1 limit.
SELECT s.tenant, s.id FROM holdfast.sessions s
WHERE s.id >= 'holdfast.unassigned:' AND s.id < 'holdfast.unassigned;'
UNION
SELECT t.tenant, t.session_id FROM holdfast.states t
WHERE t.session_id >= 'holdfast.unassigned:' AND t.session_id < 'holdfast.unassigned;'
UNION
SELECT t.tenant, t.session_id FROM holdfast.state_snapshots t
WHERE t.session_id >= 'holdfast.unassigned:' AND t.session_id < 'holdfast.unassigned;'
    AND NOT t.cleared
ORDER BY 1, 2 LIMIT $1;
