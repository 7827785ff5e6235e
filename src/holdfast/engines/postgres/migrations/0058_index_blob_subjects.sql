-- transaction: none
-- An erasure of a subject finds its blobs.
CREATE INDEX CONCURRENTLY IF NOT EXISTS blob_index_by_subject
    ON holdfast.blob_index (tenant, subject) WHERE subject <> '';
