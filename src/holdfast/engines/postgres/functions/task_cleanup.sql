-- version: 3
-- What is removed with a task.

-- A task that goes on may say more. It always changes its state before it does.
CREATE OR REPLACE FUNCTION holdfast.uncopy_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    NEW.copied := false;
    RETURN NEW;
END
$$;

-- Adds a mark to a task that is working under this fence; the same again changes nothing.
CREATE OR REPLACE FUNCTION holdfast.add_task_cleanup(
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
CREATE OR REPLACE FUNCTION holdfast.keep_task_files(in_tenant text, in_id text, in_refs text[])
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
CREATE OR REPLACE FUNCTION holdfast.clean_up_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz := holdfast.now();
BEGIN
    WITH marks AS MATERIALIZED (
        SELECT c.kind, c.ref FROM holdfast.task_cleanup c
        WHERE c.tenant = OLD.tenant AND c.task_id = OLD.id
            AND (TG_OP = 'DELETE' OR c.kind <> 'artifact')
        ORDER BY c.kind, c.ref FOR UPDATE
    )
    UPDATE holdfast.task_cleanup c SET due_at = moment FROM marks m
    WHERE c.tenant = OLD.tenant AND c.task_id = OLD.id AND c.kind = m.kind AND c.ref = m.ref;
    RETURN NULL;
END
$$;
