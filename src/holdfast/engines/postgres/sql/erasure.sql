-- Of each store: the keys of its records in a scope, and how many records each key stands for.
-- $2 is the kind of the scope, $3 its id, $4 the limit; NULL for no limit. What is stored under the id of a
-- session about a subject is in the scope of the subject, also when the session is deleted.

-- name: keys
SELECT ARRAY[k.id] AS key, 1 AS records FROM holdfast.api_keys k
WHERE k.tenant = $1 AND holdfast.erases_owner($2, $3, k.owner)
LIMIT $4::bigint;

-- name: schedules
SELECT ARRAY[s.owner, s.id] AS key, 1 AS records FROM holdfast.schedules s
WHERE s.tenant = $1 AND (holdfast.erases_task($2, $3, s.owner, s.context_id, s.agent)
    OR holdfast.stored_id(s.owner, s.context_id) IN (
        SELECT o.id FROM holdfast.sessions o
        WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
LIMIT $4::bigint;

-- name: tasks
-- Also the deleted tasks whose files are still there.
SELECT ARRAY[f.id] AS key, 1 AS records FROM (
    SELECT t.id FROM holdfast.tasks t
    WHERE t.tenant = $1 AND (holdfast.erases_task($2, $3, t.owner, t.context_id, t.agent)
        OR holdfast.stored_id(t.owner, t.context_id) IN (
            SELECT o.id FROM holdfast.sessions o
            WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
    UNION
    SELECT c.task_id FROM holdfast.task_cleanup c
    WHERE c.tenant = $1 AND (holdfast.erases_task($2, $3, c.owner, c.context_id, c.agent)
            OR holdfast.stored_id(c.owner, c.context_id) IN (
                SELECT o.id FROM holdfast.sessions o
                WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
        AND NOT EXISTS (SELECT FROM holdfast.tasks t WHERE t.tenant = c.tenant AND t.id = c.task_id)
) f
LIMIT $4::bigint;

-- name: sessions
SELECT CASE WHEN $2 = 'agent' THEN ARRAY[s.id, $3] ELSE ARRAY[s.id] END AS key, 1 AS records
FROM holdfast.sessions s
WHERE s.tenant = $1 AND s.deleted_at IS NULL AND (
    holdfast.erases_session($2, $3, s.id)
    OR $2 = 'subject' AND s.subject = $3
    OR $2 = 'agent' AND s.key IN (
        SELECT e.session_key FROM holdfast.events e WHERE e.tenant = $1 AND e.agent = $3)
    OR $2 = 'agent' AND s.agent = $3 AND NOT EXISTS (
        SELECT FROM holdfast.events e WHERE e.tenant = $1 AND e.session_key = s.key))
LIMIT $4::bigint;

-- name: states
SELECT ARRAY[f.session_id] AS key, 1 AS records FROM (
    SELECT s.session_id FROM holdfast.states s
    WHERE s.tenant = $1 AND (holdfast.erases_session($2, $3, s.session_id)
        OR s.session_id IN (
            SELECT o.id FROM holdfast.sessions o
            WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
    UNION
    SELECT s.session_id FROM holdfast.state_snapshots s
    WHERE s.tenant = $1 AND NOT s.cleared AND (holdfast.erases_session($2, $3, s.session_id)
        OR s.session_id IN (
            SELECT o.id FROM holdfast.sessions o
            WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
    UNION
    SELECT a.session_id FROM holdfast.state_asides a
    WHERE a.tenant = $1 AND NOT a.gone AND (holdfast.erases_session($2, $3, a.session_id)
        OR a.session_id IN (
            SELECT o.id FROM holdfast.sessions o
            WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
) f
LIMIT $4::bigint;

-- name: facts
SELECT ARRAY[s.namespace, s.agent] AS key, count(*) AS records
FROM holdfast.fact_scopes s JOIN holdfast.facts f ON f.tenant = $1 AND f.scope = s.key
WHERE s.tenant = $1 AND holdfast.erases_agent($2, $3, s.agent)
GROUP BY s.namespace, s.agent
UNION ALL
SELECT ARRAY[s.namespace, s.agent, f.id], 1
FROM holdfast.facts f JOIN holdfast.fact_scopes s ON s.tenant = $1 AND s.key = f.scope
WHERE f.tenant = $1 AND $2 = 'subject' AND f.subject = $3 AND f.subject <> ''
    AND NOT holdfast.erases_agent($2, $3, s.agent)
    AND (f.expires_at IS NULL OR f.expires_at > (SELECT holdfast.now()))
LIMIT $4::bigint;

-- name: collections
SELECT ARRAY[c.name] AS key, 1 AS records FROM holdfast.collections c
WHERE c.tenant = $1 AND holdfast.erases_id($2, $3, c.name)
UNION ALL
SELECT ARRAY[d.collection, d.id], 1 FROM holdfast.documents d
WHERE d.tenant = $1 AND $2 = 'subject' AND d.subject = $3 AND d.subject <> ''
    AND NOT holdfast.erases_id($2, $3, d.collection)
LIMIT $4::bigint;

-- name: entities
SELECT ARRAY[e.id] AS key, 1 AS records FROM holdfast.entities e
WHERE e.tenant = $1 AND holdfast.erases_id($2, $3, e.id)
UNION ALL
SELECT ARRAY[e.id], 1 FROM holdfast.entities e
WHERE e.tenant = $1 AND $2 = 'subject' AND e.subject = $3 AND e.subject <> ''
    AND NOT holdfast.erases_id($2, $3, e.id)
LIMIT $4::bigint;

-- name: relationships
-- Those about a subject alone: others are deleted with their entities.
SELECT ARRAY[r.id] AS key, 1 AS records FROM holdfast.relationships r
WHERE r.tenant = $1 AND $2 = 'subject' AND r.subject = $3 AND r.subject <> ''
    AND NOT holdfast.erases_id($2, $3, r.id)
LIMIT $4::bigint;

-- name: boards
SELECT ARRAY[b.id] AS key, 1 AS records FROM holdfast.boards b
WHERE b.tenant = $1 AND (holdfast.erases_session($2, $3, b.conversation_id)
    OR b.conversation_id IN (
        SELECT o.id FROM holdfast.sessions o
        WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3)
    OR $2 = 'agent' AND holdfast.stored_id(holdfast.owner_of(b.conversation_id), b.agent_id) = $3)
LIMIT $4::bigint;

-- name: channels
SELECT ARRAY[c.name] AS key, 1 AS records FROM holdfast.channels c
WHERE c.tenant = $1 AND holdfast.erases_id($2, $3, c.name) AND EXISTS (
    SELECT FROM holdfast.channel_events e WHERE e.tenant = $1 AND e.channel = c.name)
LIMIT $4::bigint;

-- name: threads
SELECT ARRAY[t.id] AS key, 1 AS records FROM holdfast.threads t
WHERE t.tenant = $1 AND (holdfast.erases_session($2, $3, t.id)
    OR t.id IN (
        SELECT o.id FROM holdfast.sessions o
        WHERE o.tenant = $1 AND $2 = 'subject' AND o.subject = $3))
LIMIT $4::bigint;

-- name: items
SELECT ARRAY[n.owner, i.key] || n.path AS key, 1 AS records
FROM holdfast.item_namespaces n JOIN holdfast.items i ON i.tenant = $1 AND i.namespace = n.number
WHERE n.tenant = $1 AND holdfast.erases_owner($2, $3, n.owner)
UNION ALL
SELECT ARRAY[n.owner, i.key] || n.path, 1
FROM holdfast.items i JOIN holdfast.item_namespaces n ON n.tenant = $1 AND n.number = i.namespace
WHERE i.tenant = $1 AND $2 = 'subject' AND i.subject = $3 AND i.subject <> ''
    AND NOT holdfast.erases_owner($2, $3, n.owner)
LIMIT $4::bigint;

-- name: blobs
SELECT ARRAY[b.ref] AS key, 1 AS records FROM holdfast.blob_index b
WHERE b.tenant = $1 AND ($2 = 'tenant' AND $3 = $1 OR $2 = 'subject' AND b.subject = $3 AND b.subject <> '')
    AND b.ref IS NOT NULL AND b.taken_at IS NULL
    AND (b.expires_at IS NULL OR b.expires_at > holdfast.now())
LIMIT $4::bigint;

-- name: forks
-- The forks of a session and their forks, of the same owner, the latest first: $2 session.
WITH RECURSIVE found AS (
    SELECT $2::text COLLATE "C" AS id, 0 AS depth
    UNION
    SELECT s.id, f.depth + 1 FROM found f
    JOIN holdfast.sessions s ON s.tenant = $1 AND s.parent = f.id
    WHERE holdfast.owner_of(s.id) = holdfast.owner_of($2)
)
SELECT f.id FROM found f WHERE f.depth > 0 ORDER BY f.depth DESC, f.id;

-- name: about
-- The sessions about a subject $2, also the deleted ones.
SELECT id FROM holdfast.sessions WHERE tenant = $1 AND subject = $2;

-- name: rest
-- Delete what no store lists.
SELECT holdfast.erase_rest($1, $2, $3);

-- name: begin
SELECT * FROM holdfast.begin_erasure($1, $2, $3, $4, $5);

-- name: shred
-- Destroy the data keys of the scope, and record their numbers with the erasure, in one step.
WITH gone AS (
    DELETE FROM holdfast.data_keys k
    WHERE k.tenant = $1 AND holdfast.erases_owner($3, $4, k.subject)
    RETURNING k.number
)
UPDATE holdfast.erasures e
SET data_keys = e.data_keys || ARRAY(SELECT g.number FROM gone g ORDER BY g.number)
WHERE e.tenant = $1 AND e.id = $2
RETURNING e.data_keys;

-- name: last
-- The newest receipt.
SELECT number, sha256 FROM holdfast.erasures
WHERE tenant = $1 AND number IS NOT NULL ORDER BY number DESC LIMIT 1;

-- name: finish
SELECT * FROM holdfast.finish_erasure($1, $2, $3, $4, $5);

-- name: list
SELECT * FROM holdfast.erasures WHERE tenant = $1 AND id > $3 ORDER BY id LIMIT $2;
