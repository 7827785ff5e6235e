-- version: 2
-- Retention: what nobody has touched since a time is deleted, a batch at a time. The role that maintains the
-- schema calls these; it sees the rows of all tenants.

-- Look at sessions in the order of tenants and ids, and delete those whose newest event and working state are
-- from before a time, and that Redis does not number. the_tenant is NULL for all. Returns how many there were, and where to go on: without an
-- id there are no more.
CREATE OR REPLACE FUNCTION holdfast.retain_sessions(
    the_tenant text, before timestamptz, after_tenant text, after_id text, at_most int,
    only_count boolean, OUT gone bigint, OUT next_tenant text, OUT next_id text
)
LANGUAGE plpgsql
AS $$
DECLARE
    one record;
    looked int := 0;
BEGIN
    gone := 0;
    FOR one IN
        -- Times of events are their writers': one of the future counts for nothing, and an old one does not
        -- make a session older than it is here.
        SELECT s.tenant, s.id, s.epoch, s.seq, GREATEST((
                   SELECT e.occurred_at FROM holdfast.events e
                   WHERE e.tenant = s.tenant AND e.session_key = s.key
                       AND e.occurred_at <= holdfast.now()
                   ORDER BY e.epoch DESC, e.seq DESC LIMIT 1), s.started_at,
               w.written_at) AS last_active_at
        FROM (
            SELECT * FROM holdfast.sessions
            WHERE (the_tenant IS NULL OR tenant = the_tenant)
                AND (tenant, id) > (after_tenant, after_id)
            ORDER BY tenant, id LIMIT at_most
        ) s
        LEFT JOIN holdfast.states w ON w.tenant = s.tenant AND w.session_id = s.id
        WHERE s.deleted_at IS NULL AND NOT s.hot
        ORDER BY s.tenant, s.id
    LOOP
        IF one.last_active_at < before THEN
            IF NOT only_count THEN
                -- Whoever writes to the session holds its row: what was written since keeps it.
                PERFORM FROM holdfast.sessions s
                WHERE s.tenant = one.tenant AND s.id = one.id AND NOT s.hot
                    AND (s.epoch, s.seq) = (one.epoch, one.seq)
                FOR UPDATE;
                CONTINUE WHEN NOT FOUND OR EXISTS (
                    SELECT FROM holdfast.states w
                    WHERE w.tenant = one.tenant AND w.session_id = one.id AND w.written_at >= before);
                PERFORM FROM holdfast.delete_session(one.tenant, one.id);
                DELETE FROM holdfast.states w
                WHERE w.tenant = one.tenant AND w.session_id = one.id AND w.written_at < before;
            END IF;
            gone := gone + 1;
        END IF;
    END LOOP;
    SELECT s.tenant, s.id INTO next_tenant, next_id
    FROM (
        SELECT tenant, id FROM holdfast.sessions
        WHERE (the_tenant IS NULL OR tenant = the_tenant)
            AND (tenant, id) > (after_tenant, after_id)
        ORDER BY tenant, id LIMIT at_most
    ) s
    ORDER BY s.tenant DESC, s.id DESC LIMIT 1;
END
$$;

-- Delete tasks that ended before a time: not those whose messages are not copied yet, nor the children of a
-- task that goes on, which may still ask for their results. Returns how many.
CREATE OR REPLACE FUNCTION holdfast.retain_tasks(
    the_tenant text, before timestamptz, at_most int, only_count boolean
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    one record;
    gone bigint := 0;
BEGIN
    FOR one IN
        SELECT t.tenant, t.id FROM holdfast.tasks t
        WHERE (the_tenant IS NULL OR t.tenant = the_tenant)
            -- The condition of the index tasks_listed as well.
            AND t.updated_at < before AND t.updated_at > '-infinity'
            AND t.state IN ('completed', 'failed', 'canceled', 'rejected') AND t.copied
            AND NOT EXISTS (
                SELECT FROM holdfast.tasks p
                WHERE p.tenant = t.tenant AND p.id = t.parent_id
                    AND p.state NOT IN ('completed', 'failed', 'canceled', 'rejected'))
        ORDER BY t.tenant, t.updated_at, t.id LIMIT at_most
    LOOP
        IF only_count THEN
            gone := gone + 1;
        ELSIF holdfast.delete_task(one.tenant, one.id, NULL) THEN
            gone := gone + 1;
        END IF;
    END LOOP;
    RETURN gone;
END
$$;
