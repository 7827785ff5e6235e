-- Postings in 32 bits where they fit, and many rare lexemes in one row. A row has postings or packed. A
-- packed posting is (number - first) << 15 | times << 11 | length. A row with words, separated by spaces,
-- has a label for its lexeme: a space, a level, ':' and the last bits of the digests of its words, as many
-- as the level says; and packed begins with the ends of the postings of each word (word_blocks.sql). So
-- rows of the earlier form stay as they are until they are merged.
ALTER TABLE holdfast.event_blocks
    ALTER COLUMN postings DROP NOT NULL,
    ALTER COLUMN postings SET STORAGE MAIN,
    ADD COLUMN packed int[],
    ALTER COLUMN packed SET STORAGE MAIN,
    ADD COLUMN words text COLLATE "C",
    ALTER COLUMN words SET STORAGE MAIN;

-- Bit n: some rows of the agent have labels of level n. Maintenance merges all that is there.
ALTER TABLE holdfast.event_agents ADD COLUMN levels int NOT NULL DEFAULT 0;
UPDATE holdfast.event_agents SET small = GREATEST(small, 2);
