-- version: 1
-- Tasks that other tasks submit and wait for.

-- Counts a child less that a task waits for; the last one makes the task due. Whoever ends a child
-- locks the child first and its parent then; so does a parent that begins to wait.
CREATE OR REPLACE FUNCTION holdfast.count_ended_child(in_tenant text, in_parent_id text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    parent holdfast.tasks;
BEGIN
    SELECT * INTO parent FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_parent_id FOR NO KEY UPDATE;
    IF NOT FOUND OR parent.waits_for = 0 THEN
        RETURN;
    END IF;
    UPDATE holdfast.tasks t SET
        waits_for = parent.waits_for - 1,
        due_at = CASE WHEN parent.waits_for = 1 AND parent.state = 'submitted'
                      THEN holdfast.now() ELSE t.due_at END
    WHERE t.tenant = in_tenant AND t.id = in_parent_id;
    IF parent.waits_for = 1 THEN
        PERFORM pg_notify('holdfast', 'work');
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.wake_parent_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.count_ended_child(NEW.tenant, NEW.parent_id);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.forget_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF OLD.has_inbox THEN
        DELETE FROM holdfast.task_inbox i WHERE i.tenant = OLD.tenant AND i.task_id = OLD.id;
    END IF;
    IF OLD.awaited AND OLD.state NOT IN ('completed', 'failed', 'canceled', 'rejected') THEN
        PERFORM holdfast.count_ended_child(OLD.tenant, OLD.parent_id);
    END IF;
    RETURN NULL;
END
$$;

-- Locks the children of a task that have not ended, and notes that it waits for them; how many.
CREATE OR REPLACE FUNCTION holdfast.await_children(in_tenant text, in_id text, in_children text[])
RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    live bigint := 0;
BEGIN
    IF cardinality(in_children) > 0 THEN
        PERFORM FROM holdfast.tasks t
        WHERE t.tenant = in_tenant AND t.id = ANY (in_children) AND t.parent_id = in_id
        ORDER BY t.id FOR NO KEY UPDATE;
        UPDATE holdfast.tasks t SET awaited = true
        WHERE t.tenant = in_tenant AND t.id = ANY (in_children) AND t.parent_id = in_id
            AND t.state NOT IN ('completed', 'failed', 'canceled', 'rejected');
        GET DIAGNOSTICS live = ROW_COUNT;
    END IF;
    RETURN live;
END
$$;
