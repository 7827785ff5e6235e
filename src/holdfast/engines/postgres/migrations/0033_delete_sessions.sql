-- A session that was deleted stays as an empty row for a while: its numbers go on, and its tombstone keeps
-- what is still on its way from Redis, or remembered by another process, from coming back.
ALTER TABLE holdfast.sessions ADD COLUMN deleted_at timestamptz;
CREATE INDEX sessions_deleted ON holdfast.sessions (deleted_at) WHERE deleted_at IS NOT NULL;

-- Sessions of all agents, newest first.
CREATE INDEX sessions_by_start ON holdfast.sessions (tenant, started_at DESC, id DESC);
