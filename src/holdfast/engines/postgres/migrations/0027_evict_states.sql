-- Working states that nobody uses leave Redis once they are saved. eviction: the number of the last eviction
-- in the shard of Redis that this row knows of, its own or one before which a writer was registered. An
-- eviction forgets the writers of a state only if none was registered since it began.
ALTER TABLE holdfast.state_snapshots ADD COLUMN eviction bigint NOT NULL DEFAULT 0;
