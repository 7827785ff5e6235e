-- What tells a state that was restored whole from one that lost something with Redis.

-- lineage: which life of the state in Redis this version is of. A later version of the same lineage
-- includes all writes before it; one of another lineage does not. saved_at: as of when it is.
ALTER TABLE holdfast.state_snapshots
    ADD COLUMN lineage bigint NOT NULL DEFAULT 0,
    ADD COLUMN saved_at timestamptz NOT NULL DEFAULT holdfast.now();
