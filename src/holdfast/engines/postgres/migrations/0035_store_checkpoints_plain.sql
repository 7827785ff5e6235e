-- The values of channels and the writes of tasks are written at each step and read once or never:
-- to compress a large one costs more than to write it.
ALTER TABLE holdfast.checkpoint_values ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE holdfast.checkpoint_writes ALTER COLUMN data SET STORAGE EXTERNAL;
