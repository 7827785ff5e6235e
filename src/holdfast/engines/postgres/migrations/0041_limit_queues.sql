-- Priority and limits of tasks. A task with the default priority and no limit pays nothing for them.

-- 0 to 9, higher first.
ALTER TABLE holdfast.tasks ADD COLUMN priority smallint NOT NULL DEFAULT 0;
-- Tasks with the same key share the limits per key of their agent; empty without one.
ALTER TABLE holdfast.tasks ADD COLUMN limit_key text COLLATE "C" NOT NULL DEFAULT '';

-- When tasks began that count towards a rate, until they count no more.
CREATE TABLE holdfast.task_starts (
    tenant text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    until timestamptz NOT NULL
);
CREATE INDEX task_starts_counted ON holdfast.task_starts (tenant, until);

ALTER TYPE holdfast.claimed_task ADD ATTRIBUTE priority bigint;
ALTER TYPE holdfast.claimed_task ADD ATTRIBUTE limit_key text;

CREATE OR REPLACE VIEW holdfast.linked_task_records AS
SELECT t.tenant, t.id, t.context_id, t.agent, t.state, t.created_at, t.updated_at, t.owner, t.note,
       t.metadata, t.version, t.fence, t.attempts, t.max_attempts, t.worker, t.lease_expires_at,
       t.run_after, t.cancel_requested, t.pause_requested, t.submit_key, t.retry_of,
       m.message_id AS status_id, m.written_at AS status_at, m.seq AS status_seq,
       m.body AS status_body, t.result, t.parent_id, t.priority, t.limit_key
FROM holdfast.tasks t
-- With a limit it stays a look-up by all three, and none of another index.
LEFT JOIN LATERAL (
    SELECT e.message_id, e.written_at, e.seq, e.body FROM holdfast.task_events e
    WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq = t.status_seq
    LIMIT 1
) m ON true;
