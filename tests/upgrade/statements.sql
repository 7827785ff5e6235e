-- name: admin.missing_rights
SELECT current_user AS role, r.right, format('%I.%I', n.nspname, c.relname) AS name
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS r ("right")
WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND c.relname <> 'migrations'
    AND NOT pg_catalog.has_table_privilege(c.oid, r.right)
ORDER BY 3, 2;
-- name: admin.stale_tables
SELECT format('ANALYZE %I.%I', s.schemaname, s.relname)
FROM pg_catalog.pg_stat_user_tables s
WHERE s.schemaname = 'holdfast'
    AND s.n_mod_since_analyze > 1000 + s.n_live_tup / 10
    AND pg_catalog.pg_has_role(
        current_user, (SELECT relowner FROM pg_catalog.pg_class c WHERE c.oid = s.relid), 'USAGE')
ORDER BY 1;
-- name: blob.store
WITH blob AS (
    INSERT INTO holdfast.blob_index (
        tenant, place, object_key, ref, size_bytes, content_type, sha256, created_at, expires_at)
    SELECT $1, 'postgres', $2, $2, $3, $4, $5, clock.now, clock.now + make_interval(secs => $6)
    FROM (SELECT holdfast.now() AS now) clock
    ON CONFLICT DO NOTHING
)
INSERT INTO holdfast.blob_chunks (tenant, ref, number, data)
SELECT $1, $2, $7 + c.at - 1, c.data FROM unnest($8::bytea[]) WITH ORDINALITY AS c (data, at)
ON CONFLICT DO NOTHING;
-- name: blob.append
INSERT INTO holdfast.blob_chunks (tenant, ref, number, data)
SELECT $1, $2, $3 + c.at - 1, c.data FROM unnest($4::bytea[]) WITH ORDINALITY AS c (data, at);
-- name: blob.open
SELECT b.*, c.number, c.data
FROM holdfast.blob_index b
LEFT JOIN holdfast.blob_chunks c
    ON c.tenant = b.tenant AND c.ref = b.ref AND c.number BETWEEN $3 AND $4
WHERE b.tenant = $1 AND b.place = 'postgres' AND b.ref = $2
  AND b.taken_at IS NULL AND (b.expires_at IS NULL OR b.expires_at > holdfast.now())
ORDER BY c.number;
-- name: blob.chunks
SELECT number, data FROM holdfast.blob_chunks
WHERE tenant = $1 AND ref = $2 AND number BETWEEN $3 AND $4
ORDER BY number;
-- name: blob.delete
WITH gone AS (
    DELETE FROM holdfast.blob_index
    WHERE tenant = $1 AND place = 'postgres' AND ref = $2
      AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
    RETURNING ref
), bytes AS (
    DELETE FROM holdfast.blob_chunks c USING gone WHERE c.tenant = $1 AND c.ref = gone.ref
)
SELECT count(*) FROM gone;
-- name: blob.sweep
WITH due AS MATERIALIZED (
    SELECT ref, size_bytes, expires_at FROM holdfast.blob_index
    WHERE tenant = $1 AND place = 'postgres' AND taken_at IS NULL
      AND expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), batch AS (
    SELECT ref, sum(size_bytes) OVER (ORDER BY expires_at, ref) - size_bytes AS bytes_before
    FROM due
), gone AS (
    DELETE FROM holdfast.blob_index b USING batch
    WHERE b.tenant = $1 AND b.place = 'postgres' AND b.ref = batch.ref
      AND batch.bytes_before < 268435456
    RETURNING b.ref
), bytes AS (
    DELETE FROM holdfast.blob_chunks c USING gone WHERE c.tenant = $1 AND c.ref = gone.ref
)
SELECT count(*) FROM gone;
-- name: blob.purge
WITH due AS MATERIALIZED (
    SELECT tenant, ref, size_bytes, expires_at FROM holdfast.blob_index
    WHERE place = 'postgres' AND expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), batch AS (
    SELECT tenant, ref,
           sum(size_bytes) OVER (ORDER BY expires_at, tenant, ref) - size_bytes AS bytes_before
    FROM due
), gone AS (
    DELETE FROM holdfast.blob_index b USING batch
    WHERE b.tenant = batch.tenant AND b.place = 'postgres' AND b.ref = batch.ref
      AND batch.bytes_before < 268435456
    RETURNING b.tenant, b.ref
), bytes AS (
    DELETE FROM holdfast.blob_chunks c USING gone
    WHERE c.tenant = gone.tenant AND c.ref = gone.ref
)
SELECT count(*) FROM gone;
-- name: blob_index.put
SELECT * FROM holdfast.put_blob($1, $2, $3, $4, $5, $6, $7, $8);
-- name: blob_index.get
SELECT * FROM holdfast.blob_index
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now());
-- name: blob_index.pin
UPDATE holdfast.blob_index SET expires_at = NULL
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
RETURNING true;
-- name: blob_index.unpin
UPDATE holdfast.blob_index SET expires_at = holdfast.now() + make_interval(secs => $4)
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
RETURNING true;
-- name: blob_index.take
UPDATE holdfast.blob_index SET taken_at = holdfast.now()
WHERE tenant = $1 AND place = $2 AND ref = $3
  AND taken_at IS NULL AND (expires_at IS NULL OR expires_at > holdfast.now())
RETURNING *;
-- name: blob_index.take_expired
WITH clock AS MATERIALIZED (
    SELECT holdfast.now() AS now
), expired AS MATERIALIZED (
    SELECT object_key, expires_at AS due_at FROM holdfast.blob_index
    WHERE tenant = $1 AND place = $2 AND taken_at IS NULL
      AND expires_at <= (SELECT now FROM clock)
    ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), unfinished AS MATERIALIZED (
    SELECT object_key, taken_at AS due_at FROM holdfast.blob_index
    WHERE tenant = $1 AND place = $2
      AND taken_at <= (SELECT now - make_interval(secs => $4) FROM clock)
    ORDER BY taken_at LIMIT $3 FOR UPDATE SKIP LOCKED
), due AS (
    SELECT * FROM expired UNION ALL SELECT * FROM unfinished ORDER BY due_at LIMIT $3
), taken AS (
    UPDATE holdfast.blob_index b SET taken_at = clock.now
    FROM clock, due
    WHERE b.tenant = $1 AND b.place = $2 AND b.object_key = due.object_key
    RETURNING b.*, due.due_at
)
SELECT * FROM taken ORDER BY due_at;
-- name: blob_index.forget
WITH gone AS (
    DELETE FROM holdfast.blob_index
    WHERE tenant = $1 AND place = $2 AND ref = ANY ($3::text[]) AND taken_at IS NOT NULL
    RETURNING 1
)
SELECT count(*) FROM gone;
-- name: blob_index.condemn
INSERT INTO holdfast.blob_index AS b (tenant, place, object_key)
SELECT $1, $2, k.key FROM unnest($3::text[]) AS k (key) ORDER BY k.key COLLATE "C"
ON CONFLICT (tenant, place, object_key) DO UPDATE SET object_key = excluded.object_key
WHERE b.ref IS NULL
RETURNING object_key;
-- name: boards.create
SELECT holdfast.create_board($1, $2, $3, $4, $5, $6, $7, $8::text[], $9::text[]);
-- name: boards.by_id
SELECT b.id AS board_id, b.conversation_id, b.max_retries, b.agent_id, b.agent_label,
       b.parent_agent_id, c.id, c.title, c.status, c.position, c.retry_count, c.note
FROM holdfast.boards b
LEFT JOIN holdfast.cards c ON c.tenant = b.tenant AND c.board_id = b.id
WHERE b.tenant = $1 AND b.id = $2
ORDER BY c.position;
-- name: boards.by_conversation
SELECT b.id AS board_id, b.conversation_id, b.max_retries, b.agent_id, b.agent_label,
       b.parent_agent_id, c.id, c.title, c.status, c.position, c.retry_count, c.note
FROM (
    SELECT * FROM holdfast.boards
    WHERE tenant = $1 AND conversation_id = $2
    ORDER BY ($3 AND agent_id <> ''), created
    LIMIT CASE WHEN $3 THEN 1 END
) b
LEFT JOIN holdfast.cards c ON c.tenant = b.tenant AND c.board_id = b.id
ORDER BY b.created, c.position;
-- name: boards.add
SELECT holdfast.add_cards($1, $2, $3::text[], $4::text[]);
-- name: boards.delete
DELETE FROM holdfast.cards WHERE tenant = $1 AND board_id = $2 AND id = $3 RETURNING true;
-- name: boards.rename
UPDATE holdfast.cards SET title = $4
WHERE tenant = $1 AND board_id = $2 AND id = $3
RETURNING id, title, status, position, retry_count, note;
-- name: boards.move
WITH card AS MATERIALIZED (
    SELECT * FROM holdfast.cards
    WHERE tenant = $1 AND board_id = $2 AND id = $3 FOR NO KEY UPDATE
), moved AS (
    UPDATE holdfast.cards c
    SET status = $4, note = CASE WHEN $5 = '""' THEN c.note ELSE $5 END
    FROM card
    WHERE c.tenant = card.tenant AND c.board_id = card.board_id AND c.id = card.id
      AND (card.status = $4 OR card.status <> ALL ($6::text[]))
    RETURNING c.id, c.title, c.status, c.position, c.retry_count, c.note
)
SELECT card.status AS was, moved.* FROM card LEFT JOIN moved ON true;
-- name: boards.retry
WITH card AS MATERIALIZED (
    SELECT c.*, c.retry_count < b.max_retries AS may_retry
    FROM holdfast.cards c
    JOIN holdfast.boards b ON b.tenant = c.tenant AND b.id = c.board_id
    WHERE c.tenant = $1 AND c.board_id = $2 AND c.id = $3 FOR NO KEY UPDATE OF c
), moved AS (
    UPDATE holdfast.cards c
    SET status = 'in_progress', retry_count = c.retry_count + 1
    FROM card
    WHERE c.tenant = card.tenant AND c.board_id = card.board_id AND c.id = card.id
      AND card.may_retry AND card.status <> ALL ($4::text[])
    RETURNING c.id, c.title, c.status, c.position, c.retry_count, c.note
)
SELECT card.status AS was, card.may_retry, moved.* FROM card LEFT JOIN moved ON true;
-- name: boards.revive
WITH card AS MATERIALIZED (
    SELECT * FROM holdfast.cards
    WHERE tenant = $1 AND board_id = $2 AND id = $3 FOR NO KEY UPDATE
), moved AS (
    UPDATE holdfast.cards c
    SET status = 'planned', retry_count = 0, note = '""'
    FROM card
    WHERE c.tenant = card.tenant AND c.board_id = card.board_id AND c.id = card.id
      AND card.status = ANY ($4::text[])
    RETURNING c.id, c.title, c.status, c.position, c.retry_count, c.note
)
SELECT card.status AS was, moved.* FROM card LEFT JOIN moved ON true;
-- name: channel.publish
SELECT out_number AS number, out_published_at AS published_at
FROM holdfast.publish($1, $2, $3, $4, $5);
-- name: channel.read
SELECT c.newest, e.number, e.id, e.event, e.published_at
FROM (
    SELECT coalesce(
        (SELECT newest FROM holdfast.channels WHERE tenant = $1 AND name = $2), 0) AS newest
) c
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.channel_events
    WHERE tenant = $1 AND channel = $2 AND number > $3
      AND expires_at > (SELECT holdfast.now())
    ORDER BY number LIMIT $4
) e ON true
ORDER BY e.number;
-- name: channel.newest
SELECT newest FROM holdfast.channels WHERE tenant = $1 AND name = $2;
-- name: channel.echo
SELECT pg_notify('holdfast', $1);
-- name: channel.purge
WITH due AS MATERIALIZED (
    SELECT tenant, channel, number FROM holdfast.channel_events
    WHERE expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.channel_events e USING due
    WHERE e.tenant = due.tenant AND e.channel = due.channel AND e.number = due.number
    RETURNING 1
)
SELECT count(*) FROM gone;
-- name: durable_log.warm
SELECT * FROM holdfast.warm_session($1, $2, $3, $4, $5, $6);
-- name: durable_log.gaps
SELECT g.epoch, g.from_seq, g.to_seq
FROM holdfast.session_gaps g
JOIN holdfast.sessions s ON s.tenant = g.tenant AND s.key = g.session_key
WHERE s.tenant = $1 AND s.id = $2 AND NOT g.open
ORDER BY g.epoch, g.from_seq;
-- name: durable_log.reserve
UPDATE holdfast.sessions SET reserved = reserved + 1000
WHERE tenant = $1 AND id = $2 AND hot AND heat = $3
RETURNING reserved;
-- name: durable_log.tail
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
ORDER BY e.epoch DESC, e.seq DESC
LIMIT (SELECT $3::bigint);
-- name: durable_log.clear
SELECT * FROM holdfast.clear_events_until($1, $2, $3, $4, $5, $6, $7);
-- name: durable_log.count_messages
SELECT count(*)
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    AND (e.agent || '') = $3 AND e.type = 'message' AND e.id <> ALL ($4::text[]);
-- name: durable_log.dimension
SELECT dimension FROM holdfast.event_dimensions WHERE tenant = $1;
-- name: durable_log.keep_vectors
SELECT holdfast.keep_event_vectors($1, $2, $3, $4, $5);
-- name: durable_log.hold_shard
SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast flush ' || $1::text, $2::bigint));
-- name: durable_log.flush
SELECT * FROM holdfast.flush_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
-- name: durable_log.bury
SELECT holdfast.bury_turn($1, $2, $3, $4, $5, $6, $7, $8);
-- name: durable_log.cool
SELECT holdfast.cool_session($1, $2, $3);
-- name: durable_log.move
SELECT * FROM holdfast.append_event($1, $2, $3, $4, $5, $6, $7, $8);
-- name: durable_log.overtaken
SELECT s.tenant, s.id, s.epoch FROM holdfast.sessions s WHERE s.overtaken LIMIT $1;
-- name: durable_log.letters
SELECT id, session, event, epoch, seq, payload, reason, failed_at
FROM holdfast.dead_letters WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3;
-- name: durable_log.letter
SELECT id, session, event, epoch, seq, payload, reason, failed_at
FROM holdfast.dead_letters WHERE tenant = $1 AND id = $2;
-- name: durable_log.replay
SELECT * FROM holdfast.replay_letter($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
-- name: durable_log.discard
DELETE FROM holdfast.dead_letters WHERE tenant = $1 AND id = $2 RETURNING id;
-- name: durable_log.save_states
INSERT INTO holdfast.state_snapshots AS s
    (tenant, session_id, version, state, ttl_seconds, expires_at, cleared)
SELECT $1, i.*
FROM unnest($2::text[], $3::bigint[], $4::text[], $5::float8[], $6::timestamptz[], $7::bool[]) i
ON CONFLICT (tenant, session_id) DO UPDATE SET
    version = excluded.version, state = excluded.state, ttl_seconds = excluded.ttl_seconds,
    expires_at = excluded.expires_at, cleared = excluded.cleared
WHERE s.version < excluded.version;
-- name: durable_log.load_state
SELECT version, state, ttl_seconds, expires_at FROM holdfast.state_snapshots
WHERE tenant = $1 AND session_id = $2 AND NOT cleared
    AND (expires_at IS NULL OR expires_at > holdfast.now());
-- name: durable_log.clear_state
INSERT INTO holdfast.state_snapshots AS s (tenant, session_id, version, state, cleared)
VALUES ($1, $2, $3, '{}', true)
ON CONFLICT (tenant, session_id) DO UPDATE SET
    version = GREATEST(s.version, excluded.version), state = '{}', ttl_seconds = NULL,
    expires_at = NULL, cleared = true;
-- name: embedding_queue.adopt
SELECT holdfast.adopt_model($1, $2, $3);
-- name: embedding_queue.take
SELECT * FROM holdfast.take_unembedded($1, $2, $3);
-- name: embedding_queue.tail
SELECT w.* FROM (
    SELECT array_agg(q.agent) AS agents, array_agg(q.session_key) AS keys,
           array_agg(q.epoch) AS epochs, array_agg(q.first_seq) AS starts,
           array_agg(q.last_seq) AS ends
    FROM (
        SELECT * FROM holdfast.unembedded_events u
        WHERE u.tenant = $1 AND u.agent = $2 ORDER BY u.session_key, u.epoch, u.first_seq LIMIT $3
    ) q
) r, holdfast.unembedded_in($1, r.agents, r.keys, r.epochs, r.starts, r.ends, $3) w;
-- name: embedding_queue.keep
SELECT holdfast.keep_embeddings(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);
-- name: embedding_queue.give_back
UPDATE holdfast.unembedded_events q SET taken_until = '-infinity'
FROM unnest($2::text[], $3::bigint[], $4::int[], $5::bigint[]) AS r (agent, key, epoch, start)
WHERE q.tenant = $1 AND q.agent = r.agent AND q.session_key = r.key AND q.epoch = r.epoch
    AND q.first_seq = r.start;
-- name: embedding_queue.retry
SELECT holdfast.retry_refused($1);
-- name: embedding_queue.unindexed_agents
SELECT DISTINCT agent FROM holdfast.unindexed_events WHERE tenant = $1 LIMIT $2;
-- name: embedding_queue.status
SELECT m.model, m.dimension, v.embedded, v.outdated, v.given,
       (SELECT COALESCE(sum(last_seq - first_seq + 1), 0)::bigint
        FROM holdfast.unembedded_events WHERE tenant = $1)
       + CASE WHEN m.model IS NULL THEN 0 ELSE
           (SELECT COALESCE(sum(last_seq - first_seq + 1), 0)::bigint
            FROM holdfast.unindexed_events WHERE tenant = $1) END AS waiting,
       (SELECT count(*) FROM holdfast.refused_events r
        JOIN holdfast.events e ON e.tenant = r.tenant AND e.session_key = r.session_key
            AND e.epoch = r.epoch AND e.seq = r.seq
        WHERE r.tenant = $1) AS refused
FROM (SELECT 1) one
LEFT JOIN holdfast.event_models m ON m.tenant = $1
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.model <> '' AND e.model = m.model) AS embedded,
           count(*) FILTER (WHERE e.model <> '' AND e.model IS DISTINCT FROM m.model) AS outdated,
           count(*) FILTER (WHERE e.model = '') AS given
    FROM holdfast.event_vectors e WHERE e.tenant = $1
) v;
-- name: embedding_queue.tenants_waiting
SELECT m.tenant FROM holdfast.event_models m
WHERE m.model = $1 AND (
    EXISTS (SELECT FROM holdfast.unindexed_events u WHERE u.tenant = m.tenant)
    OR EXISTS (
        SELECT FROM holdfast.unembedded_events u
        WHERE u.tenant = m.tenant AND u.taken_until <= holdfast.now()));
-- name: engine.ping
SELECT 1;
-- name: engine.settings
SELECT current_setting('server_version_num')::int AS version,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector') AS pgvector,
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'age') AS age,
       (SELECT count(*) > 0 FROM pg_catalog.pg_available_extensions WHERE name = 'age') AS age_available;
-- name: episodes.recent_in_session
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    ORDER BY i.epoch DESC, i.seq DESC OFFSET 0
) e
WHERE e.agent = (SELECT $3::text) AND ((/* any type */ TRUE) OR e.type = ANY ($4::text[]))
LIMIT (SELECT $5::bigint);
-- name: episodes.recent
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1 AND i.agent = $2
        AND ((/* any type */ TRUE) OR i.type = ANY ($3::text[]))
    ORDER BY i.occurred_at DESC FETCH FIRST (SELECT $4::bigint) ROWS WITH TIES
) e
JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
ORDER BY e.occurred_at DESC, s.id DESC, e.epoch DESC, e.seq DESC
LIMIT (SELECT $4);
-- name: episodes.between_in_session
SELECT e.agent, $2 AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
        AND (i.epoch, i.seq) > ((SELECT COALESCE($8::int, 0)), (SELECT COALESCE($9::bigint, 0)))
    ORDER BY i.epoch, i.seq OFFSET 0
) e
WHERE e.agent = (SELECT $3::text)
    AND e.occurred_at >= (SELECT $4::timestamptz) AND e.occurred_at < (SELECT $5::timestamptz)
    AND ((/* any type */ TRUE) OR e.type = ANY ($7::text[]))
LIMIT (SELECT $6::bigint);
-- name: episodes.between
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
JOIN holdfast.sessions s ON s.tenant = e.tenant AND s.key = e.session_key
WHERE e.tenant = $1 AND e.agent = $2
    AND e.occurred_at >= GREATEST($3, $7::timestamptz) AND e.occurred_at < $4
    AND ((/* any type */ TRUE) OR e.type = ANY ($6::text[]))
    AND ($7::timestamptz IS NULL
         OR (e.occurred_at, s.id, e.epoch, e.seq) > ($7, $8::text, $9::int, $10::bigint))
ORDER BY e.occurred_at, s.id, e.epoch, e.seq
LIMIT (SELECT $5::bigint);
-- name: episodes.start_session
INSERT INTO holdfast.sessions AS s (tenant, id, agent, started_at, metadata)
VALUES ($1, $2, $3, holdfast.now(), COALESCE($4, '{}'))
ON CONFLICT (tenant, id) DO UPDATE SET ended_at = NULL, metadata = COALESCE($4, s.metadata)
RETURNING id, agent, started_at, ended_at, metadata;
-- name: episodes.end_session
UPDATE holdfast.sessions SET ended_at = COALESCE(ended_at, holdfast.now())
WHERE tenant = $1 AND id = $2
RETURNING id, agent, started_at, ended_at, metadata;
-- name: episodes.get_session
SELECT id, agent, started_at, ended_at, metadata
FROM holdfast.sessions WHERE tenant = $1 AND id = $2;
-- name: episodes.list_sessions
SELECT id, agent, started_at, ended_at, metadata
FROM holdfast.sessions
WHERE tenant = $1 AND agent = $2
    AND ($4::timestamptz IS NULL OR (started_at, id) < ($4, $5::text))
ORDER BY started_at DESC, id DESC
LIMIT (SELECT $3::bigint);
-- name: episodes.clear
SELECT holdfast.clear_events($1, $2, $3, $4, $5);
-- name: graph.add_entities
SELECT holdfast.add_entities($1, $2, $3, $4, $5);
-- name: graph.add_relationships
SELECT holdfast.add_relationships($1, $2, $3, $4, $5, $6);
-- name: graph.walk
SELECT holdfast.walk($1, $2, $3, $4, $5, $6, $7);
-- name: graph.delete_entity
SELECT holdfast.delete_entity($1, $2);
-- name: graph.delete_relationship
DELETE FROM holdfast.relationships WHERE tenant = $1 AND id = $2 RETURNING true;
-- name: graph.find_entities
SELECT string_agg(e.body, ',' ORDER BY e.id) FROM holdfast.entities e
WHERE e.tenant = $1
    AND e.id IN (
        SELECT n.entity FROM holdfast.entity_names n
        WHERE n.tenant = $1 AND n.name = ANY ($2::text[]));
-- name: history.append_one
SELECT * FROM holdfast.append_event($1, $2, $3, $4, $5, $6, $7, $8);
-- name: history.append_to_session
SELECT * FROM holdfast.append_to_session($1, $2, $3, $4, $5, $6, $7, $8);
-- name: history.append_many
SELECT * FROM holdfast.append_events($1, $2, $3, $4, $5, $6, $7, $8);
-- name: history.append_embedded
SELECT * FROM holdfast.append_embedded_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
-- name: history.page
SELECT e.body, e.id, e.occurred_at, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1 AND i.seq > $6
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    ORDER BY i.epoch, i.seq OFFSET 0
) e
WHERE e.agent = (SELECT $3::text) AND e.type = 'message'
LIMIT (SELECT $4::bigint) OFFSET (SELECT $5::bigint);
-- name: history.newest
SELECT e.body, e.id, e.occurred_at, e.seq
FROM (
    SELECT * FROM holdfast.events i
    WHERE i.tenant = $1
        AND i.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    ORDER BY i.epoch DESC, i.seq DESC OFFSET 0
) e
WHERE e.agent = (SELECT $3::text) AND e.type = 'message'
LIMIT (SELECT $4::bigint);
-- name: history.count
SELECT count(*)
FROM holdfast.events e
WHERE e.tenant = $1
    AND e.session_key = (SELECT key FROM holdfast.sessions WHERE tenant = $1 AND id = $2)
    AND (e.agent || '') = $3 AND e.type = 'message';
-- name: history.clear
SELECT holdfast.clear_events($1, $2, $3, $4, ARRAY['message']);
-- name: indexes.try_lock
SELECT pg_try_advisory_lock($1);
-- name: indexes.unlock
SELECT pg_advisory_unlock($1);
-- name: indexes.large_dimensions
SELECT large.dimension, format('documents_near_%s', large.dimension) AS index,
       COALESCE(i.indisvalid, false) AS built, NOT COALESCE(i.indisvalid, true) AS broken
FROM (
    SELECT DISTINCT c.dimension FROM holdfast.collections c
    WHERE c.dimension <= $2
        AND EXISTS (
            SELECT FROM pg_catalog.pg_extension e
            WHERE e.extname = 'vector'
                AND (string_to_array(e.extversion, '.')::int[])[:2] >= ARRAY[0, 8])
        AND EXISTS (
            SELECT FROM holdfast.documents d
            WHERE d.tenant = c.tenant AND d.collection = c.name ORDER BY d.id OFFSET $1)
) large
LEFT JOIN pg_catalog.pg_index i
    ON i.indexrelid = to_regclass(format('holdfast.documents_near_%s', large.dimension))
ORDER BY large.dimension;
-- name: indexes.build_statement
SELECT format(
    'CREATE INDEX CONCURRENTLY %I ON holdfast.documents USING hnsw (%s %s) WHERE dimension = %s',
    $1::text, $2::text, $3::text, $4::int);
-- name: indexes.drop_statement
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS holdfast.%I', $1::text);
-- name: indexes.mark
UPDATE holdfast.collections c SET indexed = NOT c.indexed
WHERE c.indexed <> (
    COALESCE((
        SELECT i.indisvalid FROM pg_catalog.pg_index i
        WHERE i.indexrelid = to_regclass(format('holdfast.documents_near_%s', c.dimension))
    ), false)
    AND EXISTS (
        SELECT FROM holdfast.documents d
        WHERE d.tenant = c.tenant AND d.collection = c.name ORDER BY d.id OFFSET $1));
-- name: indexes.progress
SELECT p.phase, p.tuples_done AS done, GREATEST(p.tuples_total, c.reltuples::bigint) AS total
FROM pg_catalog.pg_stat_progress_create_index p
JOIN pg_catalog.pg_class c ON c.oid = p.relid
WHERE p.relid = to_regclass('holdfast.documents');
-- name: indexing.unindexed
SELECT u.session_key, u.epoch, u.first_seq, e.seq, e.type, e.body
FROM (
    SELECT q.*, sum(q.last_seq - q.first_seq + 1) OVER (
        ORDER BY q.session_key, q.epoch, q.first_seq ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW
    ) AS before
    FROM (
        SELECT * FROM holdfast.unindexed_events
        WHERE tenant = $1 AND agent = $2
        ORDER BY session_key, epoch, first_seq LIMIT $3
    ) q
) u
LEFT JOIN holdfast.events e
    ON e.tenant = u.tenant AND e.session_key = u.session_key AND e.epoch = u.epoch
    AND e.seq BETWEEN u.first_seq AND u.last_seq AND (e.agent || '') = u.agent
WHERE COALESCE(u.before, 0) < $3
ORDER BY u.session_key, u.epoch, u.first_seq, e.seq;
-- name: indexing.index
SELECT holdfast.index_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
-- name: indexing.queue
SELECT DISTINCT tenant, agent FROM holdfast.unindexed_events LIMIT $1;
-- name: keys.create
INSERT INTO holdfast.api_keys AS k (tenant, digest, id, owner, name, created_at)
VALUES ($1, $2, $3, $4, $5, holdfast.now())
ON CONFLICT (tenant, digest) DO UPDATE SET digest = k.digest
RETURNING k.tenant, k.id, k.owner, k.name, k.created_at, k.revoked_at;
-- name: keys.verify
SELECT k.tenant, k.id, k.owner, k.name, k.created_at, k.revoked_at
FROM holdfast.api_keys k
WHERE k.tenant = $1 AND k.digest = $2 AND k.revoked_at IS NULL;
-- name: keys.list
SELECT k.tenant, k.id, k.owner, k.name, k.created_at, k.revoked_at
FROM holdfast.api_keys k
WHERE k.tenant = $1
ORDER BY k.created_at, k.id;
-- name: keys.revoke
UPDATE holdfast.api_keys k SET revoked_at = holdfast.now()
WHERE k.tenant = $1 AND k.id = $2 AND k.revoked_at IS NULL
RETURNING true;
-- name: ledger_audit.events
SELECT e.*
FROM holdfast.tasks t
JOIN holdfast.task_events e ON e.tenant = t.tenant AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3) AND e.seq > $4
ORDER BY e.seq LIMIT $5;
-- name: ledger_audit.follow
SELECT w.out_state, w.out_version, e.*
FROM holdfast.watch_task($1, $2, $3) w
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.task_events
    WHERE tenant = $1 AND task_id = $2 AND seq > $4
    ORDER BY seq LIMIT $5
) e ON true
ORDER BY e.seq;
-- name: ledger_audit.replay
SELECT t.context_id, t.owner, t.agent, t.created_at, t.max_attempts, t.submit_key, t.retry_of,
       t.metadata AS task_metadata, e.*
FROM holdfast.tasks t
JOIN holdfast.task_events e ON e.tenant = t.tenant AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3) AND e.seq <= $4
ORDER BY e.seq;
-- name: ledger_audit.append_feedback
SELECT * FROM holdfast.append_task_feedback($1, $2, $3, $4, $5, $6, $7, $8);
-- name: ledger_audit.list_feedback
SELECT f.*
FROM holdfast.tasks t
JOIN holdfast.task_feedback f ON f.tenant = t.tenant AND f.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
ORDER BY f.given;
-- name: ledger_client.get
SELECT r.*, m.*, a.*
FROM holdfast.task_records r
CROSS JOIN LATERAL holdfast.task_messages(r.tenant, r.id, $4) m
CROSS JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $5::boolean THEN r.id END, NULL) a
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);
-- name: ledger_client.list
WITH matching AS NOT MATERIALIZED (
    SELECT t.id, t.updated_at FROM holdfast.tasks t
    WHERE t.tenant = $1
        AND ($2::text IS NULL OR (t.tenant || E'\n' || t.owner) = ($1 || E'\n' || $2))
        AND ($3::text IS NULL OR t.context_key = ANY (ARRAY(
            SELECT c.key FROM holdfast.task_contexts c
            WHERE c.tenant = $1 AND c.id = $3 AND ($2::text IS NULL OR c.owner = $2))))
        AND ($4::text IS NULL OR t.agent = $4)
        AND ($5::timestamptz IS NULL OR t.updated_at >= $5)
        AND ($6::text[] IS NULL OR t.state = ANY ($6))
), page AS MATERIALIZED (
    SELECT c.id, c.updated_at FROM matching c
    WHERE $7::timestamptz IS NULL OR (c.updated_at, c.id) < ($7, $8::text)
    ORDER BY c.updated_at DESC, c.id DESC LIMIT $9
)
SELECT CASE WHEN $12::boolean THEN (SELECT count(*) FROM matching) END AS total, r.*, m.*, a.*
FROM (VALUES (1)) one
LEFT JOIN page p ON true
LEFT JOIN holdfast.task_records r ON r.tenant = $1 AND r.id = p.id
LEFT JOIN LATERAL holdfast.task_messages(r.tenant, r.id, $10) m ON true
LEFT JOIN LATERAL holdfast.task_artifacts(
    r.tenant, CASE WHEN $11::boolean THEN r.id END, NULL) a ON true
ORDER BY r.updated_at DESC, r.id DESC;
-- name: ledger_client.respond
SELECT * FROM holdfast.respond_to_task($1, $2, $3, $4, $5, $6, $7, $8);
-- name: ledger_client.cancel
SELECT * FROM holdfast.cancel_task($1, $2, $3, $4);
-- name: ledger_client.pause
SELECT * FROM holdfast.pause_task($1, $2, $3, $4);
-- name: ledger_client.resume
SELECT * FROM holdfast.resume_task($1, $2, $3, $4);
-- name: ledger_context.list
SELECT c.id, c.owner, c.created_at, (
    SELECT count(*) FROM holdfast.tasks t
    WHERE t.tenant = c.tenant AND t.context_key = c.key
) AS tasks
FROM holdfast.task_contexts c
WHERE c.tenant = $1
    AND ($2::text IS NULL OR (c.tenant || E'\n' || c.owner) = ($1 || E'\n' || $2))
    AND ($3::timestamptz IS NULL OR (c.created_at, c.id, c.owner) < ($3, $4::text, $5::text))
ORDER BY c.created_at DESC, c.id DESC, c.owner DESC LIMIT $6;
-- name: ledger_context.get
SELECT c.id, c.owner, c.created_at, m.*, (
    SELECT count(*) FROM holdfast.tasks t
    WHERE t.tenant = c.tenant AND t.context_key = c.key
) AS tasks
FROM holdfast.task_contexts c
CROSS JOIN LATERAL (
    SELECT array_agg(o.message_id) AS message_ids, array_agg(o.written_at) AS message_times,
           array_agg(NULL::bigint) AS message_seqs, array_agg(o.body) AS message_bodies
    FROM (
        SELECT * FROM (
            SELECT e.message_id, e.written_at, e.stored, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = c.tenant AND e.context_key = c.key AND e.kind = 'message'
            ORDER BY e.stored DESC LIMIT $4
        ) newest ORDER BY stored
    ) o
) m
WHERE c.tenant = $1 AND c.owner = $2 AND c.id = $3;
-- name: ledger_context.clear
SELECT holdfast.clear_task_context($1, $2, $3);
-- name: ledger_lease.claim
SELECT * FROM holdfast.claim_tasks($1, $2, $3::text[], $4, $5, $6, $7);
-- name: ledger_lease.heartbeat
UPDATE holdfast.tasks t
SET lease_expires_at = holdfast.now() + make_interval(secs => $4)
WHERE t.tenant = $1 AND t.id = $2 AND CASE WHEN t.state = 'working' THEN t.fence END = $3
RETURNING t.id, t.fence, t.worker, t.lease_expires_at, t.cancel_requested, t.pause_requested;
-- name: ledger_lease.transition
SELECT * FROM holdfast.transition_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);
-- name: ledger_lease.complete
SELECT task_id, reached FROM holdfast.complete_tasks($1, $2, $3, $4);
-- name: ledger_lease.release
SELECT * FROM holdfast.release_task($1, $2, $3, $4);
-- name: ledger_lease.recover
SELECT * FROM holdfast.recover_tasks($1, $2);
-- name: ledger_progress.append_message
SELECT * FROM holdfast.append_task_message($1, $2, $3, $4, $5, $6, $7);
-- name: ledger_progress.append_remark
SELECT * FROM holdfast.append_task_remark($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
-- name: ledger_progress.record_step
SELECT * FROM holdfast.record_task_step($1, $2, $3, $4, $5, $6, $7, $8, $9);
-- name: ledger_progress.steps
SELECT task_id, seq, at, fence, step_kind, step_name, step_occurrence, digest, chunks, body
FROM holdfast.task_events
WHERE tenant = $1 AND task_id = $2 AND kind = 'step'
ORDER BY seq;
-- name: ledger_progress.append_artifact
SELECT holdfast.append_task_chunk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
-- name: ledger_progress.restore_artifacts
SELECT artifact_id, body, append, last_chunk, name, metadata, step_kind, step_name,
       step_occurrence, fence
FROM holdfast.restore_task_chunks($1, $2, $3, $4, $5, $6)
ORDER BY seq;
-- name: ledger_progress.artifacts
SELECT t.id, a.*
FROM holdfast.tasks t
CROSS JOIN LATERAL holdfast.task_artifacts(t.tenant, t.id, $4) a
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3);
-- name: ledger_push.upsert
SELECT holdfast.upsert_push_config($1, $2, $3, $4, $5, $6, $7);
-- name: ledger_push.configs
SELECT p.id, p.url, p.token, p.authentication
FROM holdfast.tasks t
JOIN holdfast.push_configs p ON p.tenant = t.tenant AND p.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
    AND ($4::text IS NULL OR p.id = $4)
ORDER BY p.id;
-- name: ledger_push.delete
SELECT holdfast.delete_push_config($1, $2, $3, $4);
-- name: ledger_push.claim
SELECT * FROM holdfast.claim_outbox($1, $2, $3);
-- name: ledger_push.delivered
SELECT holdfast.mark_delivered($1, $2, $3, $4);
-- name: ledger_push.failed
SELECT holdfast.mark_failed($1, $2, $3, $4, $5, $6, $7, $8);
-- name: ledger_push.outbox
SELECT e.*
FROM holdfast.tasks t
JOIN holdfast.outbox_entries e ON e.tenant = t.tenant AND e.task_id = t.id
WHERE t.tenant = $1 AND t.id = $2 AND ($3::text IS NULL OR t.owner = $3)
ORDER BY e.seq, e.config_id;
-- name: ledger_push.purge
WITH old AS (
    SELECT o.tenant, o.task_id, o.config_id, o.seq FROM holdfast.outbox o
    WHERE o.dead AND o.due_at < holdfast.now() - interval '30 days'
    LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.outbox o USING old
    WHERE o.tenant = old.tenant AND o.task_id = old.task_id AND o.config_id = old.config_id
        AND o.seq = old.seq
    RETURNING 1
)
SELECT count(*) FROM gone;
-- name: ledger_submit.submit
SELECT * FROM holdfast.submit_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    $18::text[], $19::text[], $20::text[], $21::text[]);
-- name: ledger_submit.first
SELECT r.*, m.message_id, m.written_at, m.body, m.seq, holdfast.now() AS now
FROM holdfast.task_records r
JOIN holdfast.task_events m
    ON m.tenant = r.tenant AND m.task_id = r.id AND m.seq = 2
WHERE r.tenant = $1 AND r.id = $2 AND ($3::text IS NULL OR r.owner = $3);
-- name: ledger_work.due
WITH RECURSIVE walk AS (
    (SELECT t.tenant, t.due_at FROM holdfast.tasks t WHERE t.state = 'submitted'
     ORDER BY t.tenant, t.due_at, t.id LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.due_at FROM walk w CROSS JOIN LATERAL (
        SELECT t.tenant, t.due_at FROM holdfast.tasks t
        WHERE t.state = 'submitted' AND t.tenant > w.tenant
        ORDER BY t.tenant, t.due_at, t.id LIMIT 1
    ) n
)
SELECT tenant FROM walk WHERE due_at <= holdfast.now() LIMIT $1;
-- name: ledger_work.working
WITH RECURSIVE walk AS (
    (SELECT t.tenant FROM holdfast.tasks t WHERE t.state = 'working'
     ORDER BY t.tenant, t.context_key LIMIT 1)
    UNION ALL
    SELECT n.tenant FROM walk w CROSS JOIN LATERAL (
        SELECT t.tenant FROM holdfast.tasks t
        WHERE t.state = 'working' AND t.tenant > w.tenant
        ORDER BY t.tenant, t.context_key LIMIT 1
    ) n
)
SELECT tenant FROM walk LIMIT $1;
-- name: ledger_work.deliveries
WITH RECURSIVE walk AS (
    (SELECT p.tenant, p.next_due_at FROM holdfast.push_configs p WHERE p.next_seq IS NOT NULL
     ORDER BY p.tenant, p.next_due_at, p.next_number LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.next_due_at FROM walk w CROSS JOIN LATERAL (
        SELECT p.tenant, p.next_due_at FROM holdfast.push_configs p
        WHERE p.next_seq IS NOT NULL AND p.tenant > w.tenant
        ORDER BY p.tenant, p.next_due_at, p.next_number LIMIT 1
    ) n
)
SELECT tenant FROM walk WHERE next_due_at <= holdfast.now() LIMIT $1;
-- name: ledger_work.ring
SELECT pg_notify('holdfast', $1);
-- name: long_term.save
SELECT holdfast.save_fact(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[], $11, $12, $13, $14, $15, $16, $17::text[],
    $18::int[]);
-- name: long_term.replayed
SELECT holdfast.replayed_fact($1, s.key, $4, $5, holdfast.now())
FROM holdfast.fact_scopes s
WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3;
-- name: long_term.get
SELECT f.id, f.content, f.metadata, f.topic, f.confidence, f.source, f.entities, f.created_at,
       f.expires_at, f.superseded_by
FROM holdfast.fact_scopes s
JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key AND f.id = $4
WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3
    AND (f.expires_at IS NULL OR f.expires_at > holdfast.now());
-- name: long_term.recent
SELECT f.id, f.content, f.metadata, f.topic, f.confidence, f.source, f.entities, f.created_at,
       f.expires_at, f.superseded_by
FROM holdfast.facts f
WHERE f.tenant = $1 AND f.superseded_by IS NULL
    AND f.scope = (
        SELECT s.key FROM holdfast.fact_scopes s
        WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3)
    AND (f.expires_at IS NULL OR f.expires_at > (SELECT holdfast.now()))
    AND ($5::text IS NULL OR f.topic = $5) AND f.confidence >= $6
ORDER BY f.number DESC LIMIT $4;
-- name: long_term.search
WITH scope AS MATERIALIZED (
    SELECT s.key, s.languages <> ARRAY[$7::text] AS mixed, holdfast.now() AS now
    FROM holdfast.fact_scopes s
    WHERE s.tenant = $1 AND s.namespace = $2 AND s.agent = $3
), words AS (
    SELECT w.number, w.score
    FROM scope s CROSS JOIN LATERAL holdfast.fact_words($1, s.key, $7, $8, s.now, $9, $10) w
), vectors AS MATERIALIZED (
    SELECT v.number, round((1 - (v.embedding OPERATOR(public.<=>)
        (SELECT $12::real[]::public.vector)))::numeric, 6)::double precision AS cosine
    FROM scope s
    JOIN holdfast.fact_vectors v
        ON v.tenant = $1 AND v.scope = s.key AND v.model = $11
            AND v.dimension = cardinality($12::real[])
    WHERE v.expires_at IS NULL OR v.expires_at > s.now
), links AS (
    SELECT l.number, max(e.counts) AS counts
    FROM scope s
    CROSS JOIN unnest($13::text[], $14::double precision[]) AS e (entity, counts)
    CROSS JOIN LATERAL (
        SELECT l.number FROM holdfast.fact_links l
        WHERE l.tenant = $1 AND l.scope = s.key AND l.entity = e.entity
            AND (l.expires_at IS NULL OR l.expires_at > s.now)
        OFFSET 0  -- never all links of the tenant
    ) l
    GROUP BY l.number
), allowed AS MATERIALIZED (
    SELECT number, w.score AS lexical, v.cosine AS semantic, l.counts AS linked
    FROM words w FULL JOIN vectors v USING (number) FULL JOIN links l USING (number)
    WHERE ($5::text IS NULL AND $6::double precision <= 0) OR EXISTS (
        SELECT FROM scope s
        JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key AND f.superseded_by IS NULL
        WHERE f.number = COALESCE(w.number, v.number, l.number)
            AND ($5 IS NULL OR f.topic = $5) AND f.confidence >= $6)
), bounds AS (
    SELECT count(semantic) > 0 AS fused, count(linked) > 0 AS blended,
           min(COALESCE(lexical, 0)) FILTER (WHERE lexical IS NOT NULL OR semantic IS NOT NULL)
               AS least_word,
           COALESCE(max(lexical), 0) AS most_word, min(semantic) AS least_near,
           max(semantic) AS most_near
    FROM allowed
), told AS (
    SELECT a.*, b.blended, CASE
        WHEN a.lexical IS NULL AND a.semantic IS NULL THEN 0
        WHEN NOT b.fused THEN a.lexical / b.most_word
        ELSE LEAST(1,
            $16::double precision * CASE
                WHEN b.least_word < b.most_word
                    THEN (COALESCE(a.lexical, 0) - b.least_word) / (b.most_word - b.least_word)
                ELSE sign(b.most_word) END
            + (1 - $16) * CASE
                WHEN a.semantic IS NULL THEN 0
                WHEN b.least_near < b.most_near
                    THEN (a.semantic - b.least_near) / (b.most_near - b.least_near)
                ELSE GREATEST(sign(b.most_near), 0) END)
        END AS fused
    FROM allowed a CROSS JOIN bounds b
), ranked AS MATERIALIZED (
    SELECT t.number, t.lexical, t.semantic, t.linked, CASE $15::text
        WHEN 'vector' THEN (1 + t.semantic) / 2
        WHEN 'graph' THEN t.linked
        ELSE CASE WHEN t.blended
            THEN (1 - $17::double precision) * t.fused + $17 * COALESCE(t.linked, 0)
            ELSE t.fused END
        END AS score
    FROM told t
    ORDER BY score DESC, t.number DESC LIMIT $4
)
SELECT r.score, r.lexical IS NOT NULL AS by_text, r.semantic IS NOT NULL AS by_vector,
       r.linked IS NOT NULL AS by_graph, s.key AS scope, r.number, f.id, f.content, f.metadata,
       f.topic, f.confidence, f.source, f.entities, f.created_at, f.expires_at, f.superseded_by
FROM scope s CROSS JOIN ranked r
JOIN holdfast.facts f
    ON f.tenant = $1 AND f.scope = s.key AND f.number = r.number AND f.superseded_by IS NULL
UNION ALL
SELECT NULL, t.number IS NULL, $12 IS NOT NULL AND v.number IS NULL, false, s.key, f.number, NULL,
       f.content, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM scope s
JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key AND f.superseded_by IS NULL
LEFT JOIN LATERAL (
    SELECT t.number FROM holdfast.fact_texts t
    WHERE t.tenant = $1 AND t.scope = s.key AND t.number = f.number AND t.language = $7 LIMIT 1
) t ON true
LEFT JOIN vectors v ON v.number = f.number
WHERE (f.expires_at IS NULL OR f.expires_at > s.now)
    AND (t.number IS NULL OR ($12 IS NOT NULL AND v.number IS NULL))
    AND (SELECT s.mixed OR ($12 IS NOT NULL AND (SELECT count(*) FROM vectors) <> (
            SELECT count(*) FROM holdfast.facts f
            WHERE f.tenant = $1 AND f.scope = s.key AND f.superseded_by IS NULL
                AND (f.expires_at IS NULL OR f.expires_at > s.now))) FROM scope s)
ORDER BY score DESC NULLS LAST, number DESC;
-- name: long_term.complete
WITH live AS MATERIALIZED (
    SELECT f.number, f.expires_at, i.at
    FROM unnest($3::bigint[]) WITH ORDINALITY AS i (number, at)
    JOIN holdfast.facts f
        ON f.tenant = $1 AND f.scope = $2 AND f.number = i.number AND f.superseded_by IS NULL
    ORDER BY f.number FOR SHARE OF f
), postings AS MATERIALIZED (
    SELECT p.at, p.lexeme, p.times FROM unnest($7::int[], $8::text[], $9::int[])
        AS p (at, lexeme, times)
), texts AS (
    INSERT INTO holdfast.fact_texts (tenant, scope, number, language, length, expires_at, lexemes)
    SELECT $1, $2, l.number, $4, t.length, l.expires_at, COALESCE(w.lexemes, '{}')
    FROM live l
    JOIN unnest($5::int[], $6::int[]) AS t (at, length) ON t.at = l.at
    LEFT JOIN (SELECT at, array_agg(lexeme) AS lexemes FROM postings GROUP BY at) w ON w.at = l.at
    ON CONFLICT DO NOTHING
    RETURNING number, length, expires_at
), posted AS (
    INSERT INTO holdfast.fact_postings
        (tenant, scope, language, lexeme, number, times, length, expires_at)
    SELECT $1, $2, $4, p.lexeme, t.number, p.times, t.length, t.expires_at
    FROM texts t JOIN live l ON l.number = t.number JOIN postings p ON p.at = l.at
)
INSERT INTO holdfast.fact_vectors (tenant, scope, number, model, dimension, expires_at, embedding)
SELECT $1, $2, l.number, $10, $11::int, l.expires_at,
       ($13::real[])[(v.nth::int - 1) * $11 + 1 : v.nth::int * $11]::public.vector
FROM live l JOIN unnest($12::int[]) WITH ORDINALITY AS v (at, nth) ON v.at = l.at
ON CONFLICT DO NOTHING;
-- name: long_term.delete
SELECT holdfast.delete_fact($1, $2, $3, $4);
-- name: long_term.clear
SELECT holdfast.clear_facts($1, $2, $3);
-- name: long_term.purge
SELECT holdfast.purge_facts($1);
-- name: migrate.is_there
SELECT to_regclass('holdfast.migrations') IS NOT NULL;
-- name: migrate.applied
SELECT version, name, sha256 FROM holdfast.migrations ORDER BY version;
-- name: migrate.record
INSERT INTO holdfast.migrations (version, name, sha256) VALUES ($1, $2, $3);
-- name: migrate.lock
SELECT pg_advisory_lock($1);
-- name: migrate.unlock
SELECT pg_advisory_unlock($1);
-- name: recall.search_words
WITH found AS MATERIALIZED (
    SELECT w.session_key, w.epoch, w.seq, w.score AS lexical,
           w.score / max(w.score) OVER () AS score
    FROM holdfast.search_words($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) w
), best AS MATERIALIZED (
    SELECT * FROM found ORDER BY score DESC FETCH FIRST (SELECT $4::bigint) ROWS WITH TIES
)
SELECT EXISTS (SELECT FROM holdfast.unindexed_events u WHERE u.tenant = $1 AND u.agent = $2),
       NULL::text, FALSE, r.*
FROM (SELECT 1) one LEFT JOIN (
    SELECT e.score, e.lexical, NULL::float8 AS semantic, e.agent, s.id AS session, e.type, e.body, e.id,
           e.run, e.occurred_at, e.epoch, e.seq
    FROM (
        SELECT b.score, b.lexical, e.*
        FROM best b
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.events
            WHERE tenant = $1 AND session_key = b.session_key AND epoch = b.epoch
                AND seq BETWEEN b.seq AND b.seq
            ORDER BY seq LIMIT 1
        ) e
        ORDER BY b.score DESC, e.id LIMIT (SELECT $4)
    ) e
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
) r ON true
ORDER BY r.score DESC, r.id;
-- name: recall.search
WITH question AS MATERIALIZED (
    SELECT l.lexeme, q.at, t.length::float8 / NULLIF(t.documents, 0) AS average,
           ln(1 + (t.documents::float8 - l.documents + 0.5) / (l.documents + 0.5)) AS weight
    FROM unnest((SELECT $3::text[])) WITH ORDINALITY AS q (lexeme, at)
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_lexemes
        WHERE tenant = $1 AND agent = $2 AND lexeme = q.lexeme OFFSET 0
    ) l
    JOIN holdfast.event_totals t ON t.tenant = $1 AND t.agent = $2
), words AS (
    SELECT p.session_key, p.epoch, p.seq,
           sum(q.weight * (p.times * ($10::float8 + 1)
                           / (p.times + $10 * (1 - $11::float8 + $11 * (p.length / q.average))))
               ORDER BY q.at) AS score
    FROM question q
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_postings
        WHERE tenant = $1 AND agent = $2 AND lexeme = q.lexeme OFFSET 0
    ) p
    GROUP BY p.session_key, p.epoch, p.seq
), vectors AS (
    SELECT v.session_key, v.epoch, v.seq,
           round((1 - (v.embedding OPERATOR(public.<=>) (SELECT $4::real[]::public.vector)))
               * 1000000) / 1000000 AS score
    FROM holdfast.event_vectors v
    WHERE v.tenant = $1 AND v.agent = $2 AND v.model IN ('', $13)
        AND (SELECT m.model = $13::text FROM holdfast.event_models m WHERE m.tenant = $1)
), found AS MATERIALIZED (
    SELECT session_key, epoch, seq, w.score AS lexical, v.score AS semantic
    FROM words w FULL JOIN vectors v USING (session_key, epoch, seq)
), allowed AS MATERIALIZED (
    SELECT * FROM found f
    WHERE (/* all */ TRUE) OR EXISTS (
        SELECT FROM (
            SELECT * FROM holdfast.events
            WHERE tenant = $1 AND session_key = f.session_key AND epoch = f.epoch
                AND seq BETWEEN f.seq AND f.seq
            ORDER BY seq LIMIT 1
        ) e
        WHERE ($6::text IS NULL OR e.session_key = (
                SELECT s.key FROM holdfast.sessions s WHERE s.tenant = $1 AND s.id = $6))
            AND ($7::text[] IS NULL OR e.type = ANY ($7))
            AND ($8::timestamptz IS NULL OR e.occurred_at >= $8)
            AND ($9::timestamptz IS NULL OR e.occurred_at < $9))
), bounds AS (
    SELECT count(semantic) > 0 AS fused,
           CASE WHEN count(semantic) > 0 AND count(lexical) < count(*) THEN 0
                ELSE min(lexical) END AS least_word,
           max(lexical) AS most_word, min(semantic) AS least_near, max(semantic) AS most_near,
           count(lexical) AS with_words
    FROM allowed
), scored AS (
    SELECT a.*,
        CASE
            WHEN NOT b.fused THEN a.lexical / b.most_word
            ELSE LEAST(1,
                $12::float8 * CASE
                    WHEN b.with_words = 0 THEN 0
                    WHEN b.least_word = b.most_word THEN
                        CASE WHEN COALESCE(a.lexical, 0) > 0 THEN 1 ELSE 0 END
                    ELSE (COALESCE(a.lexical, 0) - b.least_word) / (b.most_word - b.least_word) END
                + (1 - $12) * CASE
                    WHEN a.semantic IS NULL THEN 0
                    WHEN b.least_near = b.most_near THEN
                        CASE WHEN b.most_near > 0 THEN 1 ELSE 0 END
                    ELSE (a.semantic - b.least_near) / (b.most_near - b.least_near) END)
        END AS score
    FROM allowed a CROSS JOIN bounds b
), best AS MATERIALIZED (
    SELECT * FROM scored ORDER BY score DESC FETCH FIRST (SELECT $5::bigint) ROWS WITH TIES
)
SELECT EXISTS (SELECT FROM holdfast.unindexed_events u WHERE u.tenant = $1 AND u.agent = $2),
       (SELECT m.model FROM holdfast.event_models m WHERE m.tenant = $1),
       EXISTS (SELECT FROM holdfast.unembedded_events u WHERE u.tenant = $1 AND u.agent = $2),
       r.*
FROM (SELECT 1) one LEFT JOIN (
    SELECT b.score, b.lexical, b.semantic, e.agent, s.id AS session, e.type, e.body, e.id, e.run,
           e.occurred_at, e.epoch, e.seq
    FROM best b
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.events
        WHERE tenant = $1 AND session_key = b.session_key AND epoch = b.epoch
            AND seq BETWEEN b.seq AND b.seq
        ORDER BY seq LIMIT 1
    ) e
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
    ORDER BY b.score DESC, e.id LIMIT (SELECT $5)
) r ON true
ORDER BY r.score DESC, r.id;
-- name: recall.nearest
WITH asked AS MATERIALIZED (
    SELECT dimension FROM holdfast.event_dimensions WHERE tenant = $1
), mine AS MATERIALIZED (
    SELECT v.session_key, v.epoch, v.seq,
           v.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM holdfast.event_vectors v
    WHERE v.tenant = $1 AND v.agent = $2 AND (SELECT dimension = $4 FROM asked)
        AND v.model IN (
            '', (SELECT m.model FROM holdfast.event_models m WHERE m.tenant = $1))
        AND ((/* all */ TRUE) OR EXISTS (
            SELECT FROM (
                SELECT * FROM holdfast.events
                WHERE tenant = $1 AND session_key = v.session_key AND epoch = v.epoch
                    AND seq BETWEEN v.seq AND v.seq
                ORDER BY seq LIMIT 1
            ) e
            WHERE ($6::text IS NULL OR e.session_key = (
                    SELECT s.key FROM holdfast.sessions s WHERE s.tenant = $1 AND s.id = $6))
                AND ($7::text[] IS NULL OR e.type = ANY ($7))
                AND ($8::timestamptz IS NULL OR e.occurred_at >= $8)
                AND ($9::timestamptz IS NULL OR e.occurred_at < $9)))
), near AS MATERIALIZED (
    SELECT session_key, epoch, seq, round((1 - distance) * 1000000) / 1000000 AS semantic
    FROM mine
    WHERE distance <= (
        SELECT max(distance) + 0.000002 FROM (
            SELECT distance FROM mine ORDER BY distance LIMIT (SELECT $5::bigint)) k)
)
SELECT a.dimension, r.*
FROM (SELECT 1) one LEFT JOIN asked a ON true LEFT JOIN (
    SELECT n.semantic, e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch,
           e.seq
    FROM near n
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.events
        WHERE tenant = $1 AND session_key = n.session_key AND epoch = n.epoch
            AND seq BETWEEN n.seq AND n.seq
        ORDER BY seq LIMIT 1
    ) e
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.key = e.session_key
    ORDER BY n.semantic DESC, e.id LIMIT (SELECT $5)
) r ON true
ORDER BY r.semantic DESC, r.id;
-- name: recall.most_recent
SELECT e.agent, s.id AS session, e.type, e.body, e.id, e.run, e.occurred_at, e.epoch, e.seq
FROM holdfast.events e
JOIN holdfast.sessions s ON s.tenant = e.tenant AND s.key = e.session_key
WHERE e.tenant = $1 AND e.agent = $2
    AND ($4::text IS NULL OR s.id = $4)
    AND ($5::text[] IS NULL OR e.type = ANY ($5))
    AND ($6::timestamptz IS NULL OR e.occurred_at >= $6)
    AND ($7::timestamptz IS NULL OR e.occurred_at < $7)
ORDER BY e.occurred_at DESC, s.id DESC, e.epoch DESC, e.seq DESC
LIMIT $3;
-- name: short_term.read
SELECT state::text AS state, version, expires_at
FROM holdfast.states
WHERE tenant = $1 AND session_id = $2 AND (expires_at IS NULL OR expires_at > holdfast.now());
-- name: short_term.read_key
SELECT state ->> $3 AS state, version, expires_at
FROM holdfast.states
WHERE tenant = $1 AND session_id = $2 AND (expires_at IS NULL OR expires_at > holdfast.now());
-- name: short_term.read_keys
SELECT ARRAY(
           SELECT s.state ->> k.key
           FROM unnest($3::text[]) WITH ORDINALITY AS k (key, at) ORDER BY k.at
       ) AS state, s.version, s.expires_at
FROM holdfast.states s
WHERE s.tenant = $1 AND s.session_id = $2
  AND (s.expires_at IS NULL OR s.expires_at > holdfast.now());
-- name: short_term.write
INSERT INTO holdfast.states AS s (tenant, session_id, state, ttl_seconds, written_at, expires_at)
SELECT $1, $2, $3::text::jsonb, $4::double precision, clock.now,
       clock.now + make_interval(secs => $4)
FROM (SELECT holdfast.now() AS now) clock
ON CONFLICT (tenant, session_id) DO UPDATE SET
    state = CASE WHEN $6 OR s.expires_at <= excluded.written_at THEN excluded.state
                 ELSE (s.state - $5::text[]) || excluded.state END,
    version = nextval('holdfast.state_versions'),
    ttl_seconds = CASE WHEN excluded.ttl_seconds IS NOT NULL OR s.expires_at <= excluded.written_at
                       THEN excluded.ttl_seconds ELSE s.ttl_seconds END,
    written_at = excluded.written_at,
    expires_at = CASE WHEN excluded.ttl_seconds IS NOT NULL OR s.expires_at <= excluded.written_at
                      THEN excluded.expires_at
                      ELSE excluded.written_at + make_interval(secs => s.ttl_seconds) END;
-- name: short_term.write_at_version
SELECT holdfast.write_state_at_version($1, $2, $3::text::jsonb, $4, $5::text[], $6, $7);
-- name: short_term.clear
DELETE FROM holdfast.states WHERE tenant = $1 AND session_id = $2;
-- name: short_term.purge
WITH due AS MATERIALIZED (
    SELECT tenant, session_id FROM holdfast.states
    WHERE expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.states s USING due
    WHERE s.tenant = due.tenant AND s.session_id = due.session_id
    RETURNING 1
)
SELECT count(*) FROM gone;
-- name: state_asides.write
INSERT INTO holdfast.state_asides AS a
    (tenant, session_id, fresh, cleared, gone, state, dropped, ttl_seconds)
VALUES ($1, $2, $3, $4, $4, $5::text::jsonb, $6::text[], $7)
ON CONFLICT (tenant, session_id) DO UPDATE SET
    (stamp, written_at, fresh, cleared, gone, state, dropped, ttl_seconds) = (
        SELECT nextval('holdfast.state_aside_stamps'), excluded.written_at,
            excluded.fresh OR a.fresh OR was.over,
            excluded.cleared OR a.cleared OR was.over,
            excluded.gone,
            CASE WHEN excluded.fresh OR was.over THEN excluded.state
                ELSE (a.state - excluded.dropped) || excluded.state END,
            CASE WHEN excluded.fresh OR was.over THEN '{}'
                ELSE ARRAY(
                    SELECT DISTINCT key FROM unnest(a.dropped || excluded.dropped) key
                    WHERE NOT excluded.state ? key) END,
            CASE WHEN excluded.cleared OR was.over OR excluded.ttl_seconds IS NOT NULL
                THEN excluded.ttl_seconds ELSE a.ttl_seconds END
        FROM (SELECT COALESCE(
            a.written_at + make_interval(secs => a.ttl_seconds) <= excluded.written_at,
            false) AS over) was);
-- name: state_asides.read
SELECT session_id, stamp, fresh, cleared, gone, state::text, dropped, ttl_seconds, written_at,
    holdfast.now()
FROM holdfast.state_asides WHERE tenant = $1 AND session_id = $2;
-- name: state_asides.waiting
SELECT tenant, session_id FROM holdfast.state_asides ORDER BY stamp LIMIT $1;
-- name: state_asides.merged
DELETE FROM holdfast.state_asides WHERE tenant = $1 AND session_id = $2 AND stamp = $3;
-- name: vector.write
SELECT holdfast.write_documents($1, $2, $3, $4, $5, $6, $7, $8, $9);
-- name: vector.search
WITH asked AS MATERIALIZED (
    SELECT c.dimension, c.indexed FROM holdfast.collections c
    WHERE c.tenant = $1 AND c.name = $2
        AND (SELECT d.id FROM holdfast.documents d WHERE d.tenant = $1 AND d.collection = $2
             ORDER BY d.id LIMIT 1) IS NOT NULL
), found AS MATERIALIZED (
    SELECT d.id, d.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM holdfast.documents d
    WHERE (d.tenant = $1 AND d.collection = $2) /* scope */ = TRUE AND (/* filter */ TRUE)
        AND (SELECT a.dimension = $4 AND NOT a.indexed FROM asked a)
), ranked AS MATERIALIZED (
    SELECT id, distance FROM found ORDER BY distance, id LIMIT (SELECT $6::bigint)
)
SELECT a.dimension, a.indexed, f.id, f.content, f.metadata, f.embedding
FROM asked a LEFT JOIN (
    SELECT d.id, d.content, d.metadata, public.vector_send(d.embedding) AS embedding
    FROM ranked r
    JOIN holdfast.documents d ON d.tenant = $1 AND d.collection = $2 AND d.id = r.id
    WHERE r.distance <= COALESCE(
        (SELECT k.distance FROM ranked k LIMIT 1 OFFSET (SELECT GREATEST($5 - 1, 0))), 2) + $7
) f ON true;
-- name: vector.search_indexed
WITH asked AS MATERIALIZED (
    SELECT c.dimension, c.indexed FROM holdfast.collections c
    WHERE c.tenant = $1 AND c.name = $2
        AND (SELECT d.id FROM holdfast.documents d WHERE d.tenant = $1 AND d.collection = $2
             ORDER BY d.id LIMIT 1) IS NOT NULL
), ready AS MATERIALIZED (
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true) IS NOT NULL
        AND set_config('hnsw.ef_search', '200', true) IS NOT NULL AS ready
    FROM asked a WHERE a.dimension = $4
), nearest AS MATERIALIZED (
    SELECT n.id, n.distance FROM ready r CROSS JOIN LATERAL (
        SELECT d.id, d.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
        FROM holdfast.documents d
        WHERE r.ready AND d.tenant = $1 AND d.collection = $2
            AND d.dimension = /* dimension */ 2 AND (/* planned */ TRUE)
        ORDER BY /* near */ embedding
            OPERATOR(public.<=>) /* query */ (SELECT $3::real[]::public.vector)
        LIMIT $6
    ) n
), found AS MATERIALIZED (
    SELECT d.id, d.embedding OPERATOR(public.<=>) (SELECT $3::real[]::public.vector) AS distance
    FROM holdfast.documents d
    WHERE (d.tenant = $1 AND d.collection = $2) /* scope */ = TRUE AND (/* filter */ TRUE)
        AND (SELECT count(*) FROM nearest) < $5 AND (SELECT a.dimension = $4 FROM asked a)
), ranked AS MATERIALIZED (
    SELECT id, distance FROM (
        SELECT id, distance FROM nearest WHERE (SELECT count(*) FROM nearest) >= $5
        UNION ALL SELECT id, distance FROM found
    ) either
    ORDER BY distance, id LIMIT $6
)
SELECT a.dimension, a.indexed, f.id, f.content, f.metadata, f.embedding
FROM asked a LEFT JOIN (
    SELECT d.id, d.content, d.metadata, public.vector_send(d.embedding) AS embedding
    FROM ranked r
    JOIN holdfast.documents d ON d.tenant = $1 AND d.collection = $2 AND d.id = r.id
    WHERE r.distance <= COALESCE(
        (SELECT k.distance FROM ranked k LIMIT 1 OFFSET GREATEST($5 - 1, 0)), 2) + $7
) f ON true;
-- name: vector.get
SELECT id, content, metadata, public.vector_send(embedding) AS embedding
FROM holdfast.documents
WHERE tenant = $1 AND collection = $2 AND id = ANY ($3::text[]);
-- name: vector.delete
WITH doomed AS (
    SELECT id FROM holdfast.documents
    WHERE tenant = $1 AND collection = $2 AND id = ANY ($3::text[])
    ORDER BY id FOR UPDATE
), gone AS (
    DELETE FROM holdfast.documents d USING doomed
    WHERE d.tenant = $1 AND d.collection = $2 AND d.id = doomed.id
    RETURNING 1
)
SELECT count(*) FROM gone;
-- name: vector.list_collections
SELECT c.name FROM holdfast.collections c
WHERE c.tenant = $1
    AND (SELECT d.id FROM holdfast.documents d WHERE d.tenant = $1 AND d.collection = c.name
         ORDER BY d.id LIMIT 1) IS NOT NULL
ORDER BY c.name;
-- name: vector.delete_collection
SELECT holdfast.delete_collection($1, $2);
-- name: vector.purge_collections
SELECT holdfast.purge_collections($1);
-- name: wake.known
SELECT s.seq > 0 OR EXISTS (
        SELECT FROM holdfast.states t
        WHERE t.tenant = $1 AND t.session_id = $2
            AND (t.expires_at IS NULL OR t.expires_at > holdfast.now())),
    g.epoch, g.from_seq, g.to_seq
FROM (SELECT $1::text AS tenant, $2::text AS id) asked
LEFT JOIN holdfast.sessions s ON s.tenant = asked.tenant AND s.id = asked.id
LEFT JOIN holdfast.session_gaps g
    ON g.tenant = s.tenant AND g.session_key = s.key AND NOT g.open
ORDER BY g.epoch, g.from_seq;
