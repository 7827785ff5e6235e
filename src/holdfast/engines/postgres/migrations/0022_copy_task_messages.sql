-- What is said in a task is copied into the session log of its context. copied: all of it is there.

-- Tasks that have ended before are left as they are.
ALTER TABLE holdfast.tasks ADD COLUMN copied boolean NOT NULL DEFAULT true;
ALTER TABLE holdfast.tasks ALTER COLUMN copied SET DEFAULT false;
UPDATE holdfast.tasks SET copied = false
WHERE state NOT IN ('completed', 'failed', 'canceled', 'rejected');

-- Only tasks that rest: the version of a task must be in no index, or every step would write to all.
CREATE INDEX tasks_uncopied ON holdfast.tasks (tenant, updated_at, id)
    WHERE NOT copied AND state NOT IN ('submitted', 'working');

-- A task that goes on may say more. It always changes its state before it does.
CREATE FUNCTION holdfast.uncopy_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    NEW.copied := false;
    RETURN NEW;
END
$$;

CREATE TRIGGER uncopy_task BEFORE UPDATE ON holdfast.tasks
FOR EACH ROW WHEN (OLD.copied AND NEW.state IS DISTINCT FROM OLD.state)
EXECUTE FUNCTION holdfast.uncopy_task();
