-- version: 3
-- Erasures. The first functions are those of ErasureScope.

-- The stored id of an owner's agent or session.
CREATE OR REPLACE FUNCTION holdfast.stored_id(in_owner text, in_id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN in_owner = '' THEN in_id ELSE holdfast.owner_prefix(in_owner) || in_id END;

CREATE OR REPLACE FUNCTION holdfast.erases_id(in_kind text, in_id text, stored text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN in_kind = 'tenant' OR in_kind = 'subject' AND starts_with(stored, holdfast.owner_prefix(in_id));

CREATE OR REPLACE FUNCTION holdfast.erases_session(in_kind text, in_id text, stored text)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN holdfast.erases_id(in_kind, in_id, stored) OR in_kind = 'session' AND stored = in_id;

CREATE OR REPLACE FUNCTION holdfast.erases_agent(in_kind text, in_id text, stored text)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN holdfast.erases_id(in_kind, in_id, stored) OR in_kind = 'agent' AND stored = in_id;

CREATE OR REPLACE FUNCTION holdfast.erases_owner(in_kind text, in_id text, in_owner text)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN in_kind = 'tenant' OR in_kind = 'subject' AND in_owner = in_id;

CREATE OR REPLACE FUNCTION holdfast.erases_task(
    in_kind text, in_id text, in_owner text, in_context text, in_agent text
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN holdfast.erases_owner(in_kind, in_id, in_owner)
    OR in_kind = 'agent' AND holdfast.stored_id(in_owner, in_agent) = in_id
    OR in_kind = 'session' AND holdfast.stored_id(in_owner, in_context) = in_id;

-- Delete what no store lists and no late write needs: dead letters, indexes and counters without
-- events, contexts without tasks, namespaces without items.
CREATE OR REPLACE FUNCTION holdfast.erase_rest(in_tenant text, in_kind text, in_id text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    agents int[];
BEGIN
    -- Facts about a subject that have expired, which nobody finds any more.
    PERFORM holdfast.delete_facts(in_tenant, a.scope, a.ids) FROM (
        SELECT f.scope, array_agg(f.id) AS ids FROM holdfast.facts f
        WHERE f.tenant = in_tenant AND in_kind = 'subject' AND f.subject = in_id
            AND f.subject <> ''
        GROUP BY f.scope
    ) a;
    DELETE FROM holdfast.dead_letters d
    WHERE d.tenant = in_tenant AND (holdfast.erases_session(in_kind, in_id, d.session)
        OR d.session IN (
            SELECT s.id FROM holdfast.sessions s
            WHERE s.tenant = in_tenant AND in_kind = 'subject' AND s.subject = in_id));
    DELETE FROM holdfast.session_moves m
    WHERE m.tenant = in_tenant AND (holdfast.erases_session(in_kind, in_id, m.session)
        OR holdfast.erases_owner(in_kind, in_id, m.owner));
    DELETE FROM holdfast.task_contexts c
    WHERE c.tenant = in_tenant AND (holdfast.erases_task(in_kind, in_id, c.owner, c.id, '')
            OR holdfast.stored_id(c.owner, c.id) IN (
                SELECT s.id FROM holdfast.sessions s
                WHERE s.tenant = in_tenant AND in_kind = 'subject' AND s.subject = in_id))
        AND NOT EXISTS (SELECT FROM holdfast.tasks t
            WHERE t.tenant = c.tenant AND t.context_key = c.key);
    DELETE FROM holdfast.channels c
    WHERE c.tenant = in_tenant AND holdfast.erases_id(in_kind, in_id, c.name)
        AND NOT EXISTS (SELECT FROM holdfast.channel_events e
            WHERE e.tenant = c.tenant AND e.channel = c.name);
    DELETE FROM holdfast.item_namespaces n
    WHERE n.tenant = in_tenant AND holdfast.erases_owner(in_kind, in_id, n.owner)
        AND NOT EXISTS (SELECT FROM holdfast.items i
            WHERE i.tenant = n.tenant AND i.namespace = n.number);
    WITH idle AS (
        DELETE FROM holdfast.event_agents a
        WHERE a.tenant = in_tenant AND holdfast.erases_agent(in_kind, in_id, a.agent)
            AND NOT EXISTS (SELECT FROM holdfast.events e
                WHERE e.tenant = a.tenant AND e.agent = a.agent)
        RETURNING a.key
    )
    SELECT array_agg(key) INTO agents FROM idle;
    DELETE FROM holdfast.event_blocks b WHERE b.agent_key = ANY (agents);
    DELETE FROM holdfast.event_numbers n WHERE n.agent_key = ANY (agents);
    DELETE FROM holdfast.event_speakers s WHERE s.agent_key = ANY (agents);
    IF in_kind = 'tenant' THEN
        DELETE FROM holdfast.task_starts s WHERE s.tenant = in_tenant;
        DELETE FROM holdfast.imports i WHERE i.tenant = in_tenant;
        DELETE FROM holdfast.event_models m WHERE m.tenant = in_tenant;
        DELETE FROM holdfast.event_dimensions d WHERE d.tenant = in_tenant;
    END IF;
END
$$;

-- Store an erasure, or return the open one of its scope.
CREATE OR REPLACE FUNCTION holdfast.begin_erasure(
    in_tenant text, in_id text, in_kind text, in_scope_id text, in_counts text
) RETURNS SETOF holdfast.erasures
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO holdfast.erasures (tenant, id, kind, scope_id, counts, started_at)
    VALUES (in_tenant, in_id, in_kind, in_scope_id, in_counts, holdfast.now())
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM holdfast.erasures e
    WHERE e.tenant = in_tenant AND e.kind = in_kind AND e.scope_id = in_scope_id
        AND e.finished_at IS NULL;
END
$$;

-- Store a receipt and forget the scope; the finished erasure, or nothing if the number is taken.
CREATE OR REPLACE FUNCTION holdfast.finish_erasure(
    in_tenant text, in_id text, in_number bigint, in_receipt text, in_sha256 text
) RETURNS SETOF holdfast.erasures
LANGUAGE plpgsql
AS $$
BEGIN
    -- Nothing is left under the ids of these sessions, so whom they were about may be forgotten.
    UPDATE holdfast.sessions s SET subject = NULL
    WHERE s.tenant = in_tenant AND s.deleted_at IS NOT NULL AND s.subject = (
        SELECT e.scope_id FROM holdfast.erasures e
        WHERE e.tenant = in_tenant AND e.id = in_id AND e.kind = 'subject');
    UPDATE holdfast.erasures e
    SET scope_id = NULL, finished_at = holdfast.now(), number = in_number, receipt = in_receipt,
        sha256 = in_sha256
    WHERE e.tenant = in_tenant AND e.id = in_id AND e.finished_at IS NULL
        AND in_number = 1 + coalesce(
            (SELECT max(o.number) FROM holdfast.erasures o WHERE o.tenant = in_tenant), 0);
    RETURN QUERY SELECT * FROM holdfast.erasures e
    WHERE e.tenant = in_tenant AND e.id = in_id AND e.finished_at IS NOT NULL;
EXCEPTION WHEN unique_violation THEN
    RETURN;
END
$$;
