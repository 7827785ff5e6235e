-- What must not outlive a task: one row for each blob to release and each run to clear.
--
-- A row is written before the thing it describes. It is due, to be carried out by whoever comes first,
-- when its task has ended; a file of an artifact when its task is removed.

CREATE TABLE holdfast.task_cleanup (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    -- A blob, or for a run the session that it is in.
    ref text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    -- Of the task, which may be gone.
    owner text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    due_at timestamptz,
    PRIMARY KEY (tenant, task_id, kind, ref)
);
CREATE INDEX task_cleanup_due ON holdfast.task_cleanup (tenant, due_at) WHERE due_at IS NOT NULL;

-- So that only the end of a task that has marks looks for them.
ALTER TABLE holdfast.tasks ADD COLUMN has_cleanup boolean NOT NULL DEFAULT false;

-- Adds a mark to a task that is working under this fence; the same again changes nothing.
CREATE FUNCTION holdfast.add_task_cleanup(
    in_tenant text, in_id text, in_fence bigint, in_kind text, in_ref text, in_agent text
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.hold_task(in_tenant, in_id, in_fence);
BEGIN
    INSERT INTO holdfast.task_cleanup (tenant, task_id, kind, ref, agent, owner, context_id)
    VALUES (in_tenant, in_id, in_kind, in_ref, in_agent, task.owner, task.context_id)
    ON CONFLICT DO NOTHING;
    IF NOT task.has_cleanup THEN
        UPDATE holdfast.tasks t SET has_cleanup = true WHERE t.tenant = in_tenant AND t.id = in_id;
    END IF;
END
$$;

-- Marks blobs as files of a task's artifacts; false if the task is gone.
CREATE FUNCTION holdfast.keep_task_files(in_tenant text, in_id text, in_refs text[])
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks;
BEGIN
    SELECT * INTO task FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO holdfast.task_cleanup (tenant, task_id, kind, ref, agent, owner, context_id)
    SELECT in_tenant, in_id, 'artifact', ref, '', task.owner, task.context_id
    FROM unnest(in_refs) ref ORDER BY ref
    ON CONFLICT DO NOTHING;
    IF NOT task.has_cleanup AND cardinality(in_refs) > 0 THEN
        UPDATE holdfast.tasks t SET has_cleanup = true WHERE t.tenant = in_tenant AND t.id = in_id;
    END IF;
    RETURN true;
END
$$;

-- Makes the marks of a task due in the statement that ends or removes it, whichever that is.
CREATE FUNCTION holdfast.clean_up_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    WITH marks AS MATERIALIZED (
        SELECT c.kind, c.ref FROM holdfast.task_cleanup c
        WHERE c.tenant = OLD.tenant AND c.task_id = OLD.id
            AND (TG_OP = 'DELETE' OR c.kind <> 'artifact')
        ORDER BY c.kind, c.ref FOR UPDATE
    )
    UPDATE holdfast.task_cleanup c SET due_at = holdfast.now() FROM marks m
    WHERE c.tenant = OLD.tenant AND c.task_id = OLD.id AND c.kind = m.kind AND c.ref = m.ref;
    RETURN NULL;
END
$$;
CREATE TRIGGER task_ended AFTER UPDATE OF state ON holdfast.tasks FOR EACH ROW
    WHEN (NEW.has_cleanup AND NEW.state IN ('completed', 'failed', 'canceled', 'rejected'))
    EXECUTE FUNCTION holdfast.clean_up_task();
CREATE TRIGGER task_removed AFTER DELETE ON holdfast.tasks FOR EACH ROW
    WHEN (OLD.has_cleanup)
    EXECUTE FUNCTION holdfast.clean_up_task();

-- Marks were kept in working states that clients could name: in the session holdfast.cleanup, by task,
-- and in holdfast.files.<digest of owner and context>, by task. They are moved from here, and copied
-- from the states that Redis saved; what only Redis has is found by the first sweep of a worker. Anything
-- may be in those sessions: what is no mark stays where it is.
CREATE FUNCTION holdfast.old_mark(in_text text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    RETURN in_text::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    -- Such as U+0000, which jsonb has no room for, or a nesting that it cannot read.
    RETURN NULL;
END
$$;

CREATE FUNCTION holdfast.old_refs(in_refs jsonb) RETURNS SETOF text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT ref #>> '{}'
    FROM jsonb_array_elements(CASE jsonb_typeof(in_refs) WHEN 'array' THEN in_refs ELSE '[]' END) ref
    WHERE jsonb_typeof(ref) = 'string'
$$;

CREATE VIEW holdfast.old_marks AS
SELECT tenant, session_id, task_id, mark, live
FROM (
    SELECT s.tenant, s.session_id, e.key AS task_id, holdfast.old_mark(e.value) AS mark, true AS live
    FROM holdfast.states s CROSS JOIN LATERAL jsonb_each_text(s.state) e
    WHERE s.session_id = 'holdfast.cleanup' OR starts_with(s.session_id, 'holdfast.files.')
    UNION ALL
    SELECT s.tenant, s.session_id, e.key, holdfast.old_mark(e.value), false
    FROM holdfast.state_snapshots s
    CROSS JOIN LATERAL jsonb_each_text(
        CASE jsonb_typeof(holdfast.old_mark(s.state)) WHEN 'object' THEN holdfast.old_mark(s.state)
             ELSE '{}' END) e
    WHERE NOT s.cleared
        AND (s.session_id = 'holdfast.cleanup' OR starts_with(s.session_id, 'holdfast.files.'))
) found
WHERE octet_length(task_id) BETWEEN 1 AND 512 AND CASE session_id
    WHEN 'holdfast.cleanup' THEN jsonb_typeof(mark -> 'agent') = 'string'
                                 AND jsonb_typeof(mark -> 'session') = 'string'
    ELSE jsonb_typeof(mark) = 'array' END;

INSERT INTO holdfast.task_cleanup
    (tenant, task_id, kind, ref, agent, owner, context_id, due_at)
SELECT m.tenant, m.task_id, m.kind,
       -- The session of a run moves to its owner, and so does its agent.
       CASE WHEN m.kind = 'run' AND t.owner <> '' THEN holdfast.owner_prefix(t.owner) ELSE '' END
           || m.ref,
       CASE WHEN m.kind = 'run' AND t.owner <> '' THEN holdfast.owner_prefix(t.owner) ELSE '' END
           || m.agent,
       coalesce(t.owner, ''), coalesce(t.context_id, ''),
       CASE WHEN t.id IS NULL OR (m.kind <> 'artifact'
                 AND t.state IN ('completed', 'failed', 'canceled', 'rejected'))
            THEN holdfast.now() END
FROM (
    SELECT tenant, task_id, 'run' AS kind, mark ->> 'session' AS ref, mark ->> 'agent' AS agent
    FROM holdfast.old_marks
    WHERE session_id = 'holdfast.cleanup' AND mark -> 'run' = 'true'
    UNION
    SELECT tenant, task_id, 'blob', holdfast.old_refs(mark -> 'blobs'), '' FROM holdfast.old_marks
    WHERE session_id = 'holdfast.cleanup'
    UNION
    SELECT tenant, task_id, 'file', holdfast.old_refs(mark -> 'files'), '' FROM holdfast.old_marks
    WHERE session_id = 'holdfast.cleanup'
    UNION
    SELECT tenant, task_id, 'artifact', holdfast.old_refs(mark), '' FROM holdfast.old_marks
    WHERE session_id <> 'holdfast.cleanup'
) m
LEFT JOIN holdfast.tasks t ON t.tenant = m.tenant AND t.id = m.task_id
WHERE octet_length(m.ref) BETWEEN 1 AND 512 AND octet_length(m.agent) <= 512
ON CONFLICT DO NOTHING;

UPDATE holdfast.tasks t SET has_cleanup = true
FROM (SELECT DISTINCT tenant, task_id FROM holdfast.task_cleanup) c
WHERE t.tenant = c.tenant AND t.id = c.task_id;

UPDATE holdfast.states s
SET state = s.state - m.moved, version = nextval('holdfast.state_versions')
FROM (
    SELECT tenant, session_id, array_agg(task_id) AS moved FROM holdfast.old_marks WHERE live
    GROUP BY tenant, session_id
) m
WHERE s.tenant = m.tenant AND s.session_id = m.session_id;
DELETE FROM holdfast.states s
WHERE s.state = '{}'
    AND (s.session_id = 'holdfast.cleanup' OR starts_with(s.session_id, 'holdfast.files.'));

DROP VIEW holdfast.old_marks;
DROP FUNCTION holdfast.old_refs(jsonb);
DROP FUNCTION holdfast.old_mark(text);
