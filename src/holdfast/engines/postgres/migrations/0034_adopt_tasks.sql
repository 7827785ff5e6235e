-- Tasks that somebody else runs. They are never due, so that the queue of workers ends before them.
ALTER TABLE holdfast.tasks ADD COLUMN adopted boolean NOT NULL DEFAULT false;

-- Its messages are not copied to session logs: no agent of ours takes part in it.
DROP TRIGGER uncopy_task ON holdfast.tasks;
CREATE TRIGGER uncopy_task BEFORE UPDATE ON holdfast.tasks
    FOR EACH ROW
    WHEN (OLD.copied AND NEW.state IS DISTINCT FROM OLD.state AND NOT NEW.adopted)
    EXECUTE FUNCTION holdfast.uncopy_task();
