-- The results of steps, messages and parts of artifacts are written once, by a caller who waits: to
-- compress a large one costs more than to write it.
ALTER TABLE holdfast.task_events ALTER COLUMN body SET STORAGE EXTERNAL;
