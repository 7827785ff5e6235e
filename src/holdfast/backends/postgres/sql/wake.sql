-- name: known
-- Whether anything was written to a session's log, or is in its state.
SELECT EXISTS (SELECT FROM holdfast.sessions WHERE tenant = $1 AND id = $2 AND seq > 0)
    OR EXISTS (
        SELECT FROM holdfast.states
        WHERE tenant = $1 AND session_id = $2
            AND (expires_at IS NULL OR expires_at > holdfast.now()));
