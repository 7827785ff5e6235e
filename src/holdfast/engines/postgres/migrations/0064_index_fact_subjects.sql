-- transaction: none
-- An erasure of a subject finds the facts about it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS facts_by_subject
    ON holdfast.facts (tenant, subject) WHERE subject <> '';
