-- Compress the postings of a block in the row, from a few of them on. Blocks that are there are compressed
-- when they are merged.
ALTER TABLE holdfast.event_blocks
    ALTER COLUMN postings SET STORAGE MAIN,
    SET (toast_tuple_target = 128);
