-- name: load
-- Let Redis number a session: $3 agent or NULL, $4 to $6 what Redis knows, or NULL.
SELECT * FROM holdfast.warm_session($1, $2, $3, $4, $5, $6);

-- name: gaps
-- What is lost of a session, or may be: the latter where somebody may have acknowledged some of it.
SELECT g.epoch, g.from_seq, g.to_seq, g.writers IS NULL
FROM holdfast.session_gaps g
JOIN holdfast.sessions s ON g.tenant = $1 AND s.key = g.session_key
WHERE s.tenant = $1 AND s.id = $2 AND NOT g.open AND g.writers IS DISTINCT FROM '{}'
ORDER BY g.epoch, g.from_seq;

-- name: agent_gaps
-- The same for all sessions that an agent started.
SELECT g.epoch, g.from_seq, g.to_seq, g.writers IS NULL, s.id
FROM holdfast.session_gaps g
JOIN holdfast.sessions s ON g.tenant = $1 AND s.key = g.session_key
WHERE s.tenant = $1 AND s.agent = $2 AND s.started_at > '-infinity' AND NOT g.open AND g.writers IS DISTINCT FROM '{}'
ORDER BY s.id, g.epoch, g.from_seq;

-- name: hot_sessions
-- Sessions that an agent started and Redis numbers, the newest first: $3 limit.
SELECT id, heat FROM holdfast.sessions
WHERE tenant = $1 AND agent = $2 AND hot AND started_at > '-infinity'
ORDER BY started_at DESC, id DESC LIMIT $3;

-- name: settle
-- A process misses nothing of a session: $3 the process.
WITH alone AS (
    DELETE FROM holdfast.session_gaps g USING holdfast.sessions s
    WHERE s.tenant = $1 AND s.id = $2 AND g.tenant = $1 AND g.session_key = s.key
        AND NOT g.open AND g.writers = ARRAY[$3::text]
)
UPDATE holdfast.session_gaps g SET writers = array_remove(g.writers, $3::text)
FROM holdfast.sessions s
WHERE s.tenant = $1 AND s.id = $2 AND g.tenant = $1 AND g.session_key = s.key
    AND NOT g.open AND $3::text = ANY (g.writers) AND cardinality(g.writers) > 1;

-- name: unsettled
-- Sessions of which a process may have lost something with Redis.
SELECT * FROM holdfast.sessions_unsettled($1);

-- name: release
-- A process that ends has nothing left that is not stored.
SELECT holdfast.release_writer($1);

-- name: reserve
-- Numbers for a grant that Redis has: $3 its heat, $4 who will acknowledge them before they are stored.
UPDATE holdfast.sessions
SET reserved = reserved + 1000, writers = holdfast.with_writer(writers, $4)
WHERE tenant = $1 AND id = $2 AND hot AND heat = $3
RETURNING reserved, writers;

-- name: reached
-- Up to which place a session is stored that has ever been numbered.
SELECT epoch, seq FROM holdfast.sessions
WHERE tenant = $1 AND id = $2 AND (seq > 0 OR reserved > 0 OR hot) AND deleted_at IS NULL;

-- name: find
-- What became of entries that left Redis: $2 sessions, $3 ids, $4 epochs, $5 seqs, $6 to $9 what they
-- say. Where and with which time each is stored, and whether it says the same; whether a clear covers it,
-- whether it is a dead letter, whether its session was released since, and whether its epoch is over.
SELECT e.epoch, e.seq, e.occurred_at,
    holdfast.is_same_event(e, i.agent, i.type, i.run, i.body),
    EXISTS (
        SELECT FROM holdfast.session_tombstones t
        WHERE t.tenant = $1 AND t.session_key = s.key
            -- An exact one that names an agent is of an event that was removed by itself.
            AND CASE WHEN t.exact
                THEN t.agent IS NOT NULL AND (i.epoch, i.seq) = (t.epoch, t.seq)
                ELSE (i.epoch, i.seq) <= (t.epoch, t.seq) END
            AND (t.agent IS NULL OR t.agent = i.agent)
            AND (t.run IS NULL OR t.run = i.run)
            AND (t.types IS NULL OR i.type = ANY (t.types))),
    EXISTS (
        SELECT FROM holdfast.dead_letters d
        WHERE d.tenant = $1 AND d.session = i.session AND d.epoch = i.epoch AND d.seq = i.seq
            AND d.event = i.id),
    COALESCE(NOT s.hot AND NOT s.overtaken, false),
    COALESCE(i.epoch < s.epoch, false)
FROM unnest($2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::text[], $8::text[],
            $9::text[]) WITH ORDINALITY
    AS i (session, id, epoch, seq, agent, type, run, body, at)
LEFT JOIN holdfast.sessions s ON s.tenant = $1 AND s.id = i.session
LEFT JOIN holdfast.events e ON e.tenant = $1 AND e.session_key = s.key AND e.id = i.id
ORDER BY i.at;

-- name: tail
-- The newest $3 events of a session, the newest first.
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
ORDER BY e.epoch DESC, e.seq DESC
LIMIT (SELECT $3::bigint);

-- name: clear
-- Remove events up to a place: $3 agent, $4 run, $5 types, $6 epoch, $7 seq, each NULL for all.
SELECT * FROM holdfast.clear_events_until($1, $2, $3, $4, $5, $6, $7);

-- name: delete_session
-- Delete a session with its log.
SELECT * FROM holdfast.delete_session($1, $2);

-- name: delete_events
-- Delete events of a session by their ids.
SELECT * FROM holdfast.delete_events($1, $2, $3);

-- name: count_messages
-- How many messages, besides those with the ids of $4.
SELECT count(*)
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    AND (e.agent || '') = $3 AND e.type = 'message' AND e.id <> ALL ($4::text[]);

-- name: dimension
-- How many numbers a vector of the log has.
SELECT dimension FROM holdfast.event_dimensions WHERE tenant = $1;

-- name: keep_vectors
-- Keep the vectors of events: $2 sessions, $3 ids, $4 all numbers, $5 the dimension.
SELECT holdfast.keep_event_vectors($1, $2, $3, $4, $5);

-- name: hold_shard
-- Be the one who flushes a shard of a tenant, until the end of the transaction; whether we are.
SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast flush ' || $1::text, $2::bigint));

-- name: flush
-- Store a batch of turns at their places.
SELECT * FROM holdfast.store_turns($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: bury
-- Put a turn among the dead letters: $2 its id there.
SELECT holdfast.bury_turn($1, $2, $3, $4, $5, $6, $7, $8);

-- name: unload
-- Take back the numbering of a session that rests.
SELECT holdfast.cool_session($1, $2, $3);

-- name: move
-- Store a turn behind all that was ever numbered in its session, whose numbering is taken back.
SELECT epoch FROM holdfast.store_event($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: behind
-- Sessions whose numbering was taken back from Redis and has not been granted to it again: $1 limit.
SELECT * FROM holdfast.sessions_overtaken($1);

-- name: letters
-- Dead letters, oldest first, after an id: $2 the id, $3 limit.
SELECT id, session, event, epoch, seq, payload, reason, failed_at
FROM holdfast.dead_letters WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3;

-- name: letter
-- One dead letter.
SELECT id, session, event, epoch, seq, payload, reason, failed_at
FROM holdfast.dead_letters WHERE tenant = $1 AND id = $2;

-- name: replay
-- Store the event of a dead letter after all.
SELECT * FROM holdfast.replay_letter($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: discard
-- Give a dead letter up; its place stays empty.
DELETE FROM holdfast.dead_letters WHERE tenant = $1 AND id = $2 RETURNING id;

-- name: save_states
-- Keep states as they are in Redis, each unless a newer version is there, or one that it does not include;
-- and $11 versions of each.
INSERT INTO holdfast.state_snapshots AS s
    (tenant, session_id, version, state, ttl_seconds, expires_at, cleared, lineage, base,
        stamp, kept_versions)
SELECT $1, i.*, $11
FROM unnest($2::text[], $3::bigint[], $4::text[], $5::float8[], $6::timestamptz[], $7::bool[],
            $8::bigint[], $9::bigint[], $10::bigint[]) i
ON CONFLICT (tenant, session_id) DO UPDATE SET
    version = excluded.version, state = excluded.state, ttl_seconds = excluded.ttl_seconds,
    expires_at = excluded.expires_at, cleared = excluded.cleared, lineage = excluded.lineage,
    base = excluded.base, stamp = GREATEST(s.stamp, excluded.stamp), saved_at = excluded.saved_at,
    kept_versions = excluded.kept_versions
WHERE s.version < excluded.version
    AND (excluded.cleared OR s.lineage = excluded.lineage OR s.version = excluded.base);

-- name: load_state
-- A state as it was saved, also one that was cleared or has expired.
SELECT version, state, ttl_seconds, expires_at,
    cleared OR COALESCE(expires_at <= holdfast.now(), false), lineage, stamp, saved_at, writers,
    eviction
FROM holdfast.state_snapshots WHERE tenant = $1 AND session_id = $2;

-- name: register_state
-- A process will acknowledge writes to a state before they are saved: $3 the process, $4 the last eviction
-- in its shard of Redis.
INSERT INTO holdfast.state_snapshots AS s
    (tenant, session_id, version, state, cleared, writers, eviction)
VALUES ($1, $2, 0, '{}', true, ARRAY[$3::text], $4)
ON CONFLICT (tenant, session_id) DO UPDATE SET
    writers = holdfast.with_writer(s.writers, $3), eviction = GREATEST(s.eviction, $4);

-- name: evict_states
-- Forget the writers of states that are about to leave Redis as they are here: $2 the number of the
-- eviction, then session, version, lineage and base of each, and whether its writers are to stay. A state
-- that was registered for since the eviction began, or is being saved, is left out. One that was restored
-- and not written to since is of a lineage of its own, and has its base as its version.
WITH found AS (
    SELECT s.session_id, i.doubtful
    FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bool[])
        i (session_id, version, lineage, base, doubtful)
    JOIN holdfast.state_snapshots s ON s.tenant = $1 AND s.session_id = i.session_id
    WHERE s.eviction < $2
        AND (s.version = i.version AND s.lineage = i.lineage
            OR s.version >= i.version AND i.version = i.base)
    FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE holdfast.state_snapshots s
SET eviction = $2, writers = CASE WHEN f.doubtful THEN s.writers ELSE '{}' END
FROM found f WHERE s.tenant = $1 AND s.session_id = f.session_id
RETURNING s.session_id;

-- name: state_versions
-- What is kept of some sessions, whatever it is.
SELECT session_id, version, cleared, lineage FROM holdfast.state_snapshots
WHERE tenant = $1 AND session_id = ANY ($2::text[]);

-- name: earlier_versions
-- The versions of a state that are kept, before one ($3), the newest first.
SELECT e.version, e.written_at FROM holdfast.earlier_states e
WHERE e.tenant = $1 AND e.session_id = $2 AND e.saved AND e.version < $3
    AND EXISTS (
        SELECT FROM holdfast.state_snapshots s
        WHERE s.tenant = $1 AND s.session_id = $2 AND NOT s.cleared
            AND (s.expires_at IS NULL OR s.expires_at > holdfast.now()))
ORDER BY e.version DESC LIMIT $4;

-- name: earlier_state
-- A version of a state ($3), with the expiry of the state.
SELECT coalesce(e.state, s.state) AS state, s.expires_at
FROM holdfast.state_snapshots s
LEFT JOIN holdfast.earlier_states e
    ON e.tenant = $1 AND e.session_id = $2 AND e.saved AND e.version = $3
WHERE s.tenant = $1 AND s.session_id = $2 AND NOT s.cleared
    AND (s.expires_at IS NULL OR s.expires_at > holdfast.now())
    AND (e.version = $3 OR s.version = $3);

-- name: clear_state
-- Remember that a state was cleared: $3 the version that it had.
INSERT INTO holdfast.state_snapshots AS s (tenant, session_id, version, state, cleared)
VALUES ($1, $2, $3, '{}', true)
ON CONFLICT (tenant, session_id) DO UPDATE SET
    version = GREATEST(s.version, excluded.version), state = '{}', ttl_seconds = NULL,
    expires_at = NULL, cleared = true, saved_at = excluded.saved_at;
