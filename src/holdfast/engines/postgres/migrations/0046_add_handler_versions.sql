-- The versions of handlers and apps that tasks run with.

ALTER TABLE holdfast.tasks
    -- The version of the handler that it began with; empty if that had none, or before it begins.
    ADD COLUMN handler_version text COLLATE "C" NOT NULL DEFAULT '',
    -- The version of the app that claimed it last.
    ADD COLUMN app_version text COLLATE "C" NOT NULL DEFAULT '';

-- A claim: the version of the app that made it.
ALTER TABLE holdfast.task_events ADD COLUMN app_version text COLLATE "C";

-- claimed_task, with the version: processes of the landed version read that type.
CREATE TYPE holdfast.claimed_version AS (
    id text, context_id text, agent text, state text, created_at timestamptz,
    updated_at timestamptz, owner text, note text, metadata text, version bigint, fence bigint,
    attempts bigint, max_attempts bigint, worker text, lease_expires_at timestamptz,
    run_after timestamptz, cancel_requested boolean, pause_requested boolean, submit_key text,
    retry_of text, message_ids text[], message_times timestamptz[], message_seqs bigint[],
    message_bodies text[], parent_id text, priority bigint, limit_key text, handler_version text
);

CREATE OR REPLACE VIEW holdfast.linked_task_records AS
SELECT t.tenant, t.id, t.context_id, t.agent, t.state, t.created_at, t.updated_at, t.owner, t.note,
       t.metadata, t.version, t.fence, t.attempts, t.max_attempts, t.worker, t.lease_expires_at,
       t.run_after, t.cancel_requested, t.pause_requested, t.submit_key, t.retry_of,
       m.message_id AS status_id, m.written_at AS status_at, m.seq AS status_seq,
       m.body AS status_body, t.result, t.parent_id, t.priority, t.limit_key, t.handler_version
FROM holdfast.tasks t
-- With a limit it stays a look-up by all three, and none of another index.
LEFT JOIN LATERAL (
    SELECT e.message_id, e.written_at, e.seq, e.body FROM holdfast.task_events e
    WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq = t.status_seq
    LIMIT 1
) m ON true;
