-- transaction: none
-- Events are filtered by their payloads, and asked for over all agents. Each statement is a transaction
-- of its own, so that nothing is locked longer than it takes, and finds what is there when it runs again.

-- The scalars at the top level of a payload, with escaped texts; NULL for an event that was stored
-- before, whose body is read instead (holdfast.filterable_of).
ALTER TABLE holdfast.events ADD COLUMN IF NOT EXISTS filterable jsonb;

CREATE INDEX IF NOT EXISTS events_by_time ON holdfast.events (tenant, occurred_at);

CREATE INDEX IF NOT EXISTS events_of_owner ON holdfast.events (tenant, owner, occurred_at)
    WHERE owner <> '';
