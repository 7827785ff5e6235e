-- name: known
-- Whether anything was written to a session's log, or is in its state; and what of its log is lost.
SELECT s.seq > 0 AND s.deleted_at IS NULL OR EXISTS (
        SELECT FROM holdfast.states t
        WHERE t.tenant = $1 AND t.session_id = $2
            AND (t.expires_at IS NULL OR t.expires_at > holdfast.now())),
    g.epoch, g.from_seq, g.to_seq, g.writers IS NULL
FROM (SELECT $1::text AS tenant, $2::text AS id) asked
LEFT JOIN holdfast.sessions s ON s.tenant = $1 AND s.id = asked.id
LEFT JOIN holdfast.session_gaps g
    ON g.tenant = $1 AND g.session_key = s.key AND NOT g.open AND g.writers IS DISTINCT FROM '{}'
ORDER BY g.epoch, g.from_seq;
