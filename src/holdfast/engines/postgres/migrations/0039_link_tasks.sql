-- Results of tasks, child tasks, messages to running tasks, typed questions.

ALTER TABLE holdfast.tasks
    -- What the handler returned, as JSON text.
    ADD COLUMN result text,
    -- The task that submitted this one.
    ADD COLUMN parent_id text COLLATE "C" NOT NULL DEFAULT '',
    -- Its parent waits for its end.
    ADD COLUMN awaited boolean NOT NULL DEFAULT false,
    -- A task that waits is submitted and due later or never: how many of its children have to end
    -- before it is due, or the topic of the message that makes it due.
    ADD COLUMN waits_for bigint NOT NULL DEFAULT 0,
    ADD COLUMN waits_topic text COLLATE "C",
    ADD COLUMN has_inbox boolean NOT NULL DEFAULT false,
    -- What an answer to the open question must be, as JSON text.
    ADD COLUMN ask_form text;

ALTER TABLE holdfast.task_events
    -- A step.
    ADD COLUMN started_at timestamptz;

ALTER TYPE holdfast.claimed_task ADD ATTRIBUTE parent_id text;

-- Messages to running tasks, by topic and in order; what was received stays until the task is
-- removed, so that it is not sent again under the same id.
CREATE TABLE holdfast.task_inbox (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    topic text COLLATE "C" NOT NULL,
    body text NOT NULL,
    digest text COLLATE "C" NOT NULL,
    sent_at timestamptz NOT NULL,
    received boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, task_id, id)
);
CREATE INDEX task_inbox_waiting ON holdfast.task_inbox ((tenant || E'\n' || task_id), topic, number)
    WHERE NOT received;

-- task_records, with what was added here: processes of the landed version read that view by the
-- order of its columns.
CREATE VIEW holdfast.linked_task_records AS
SELECT t.tenant, t.id, t.context_id, t.agent, t.state, t.created_at, t.updated_at, t.owner, t.note,
       t.metadata, t.version, t.fence, t.attempts, t.max_attempts, t.worker, t.lease_expires_at,
       t.run_after, t.cancel_requested, t.pause_requested, t.submit_key, t.retry_of,
       m.message_id AS status_id, m.written_at AS status_at, m.seq AS status_seq,
       m.body AS status_body, t.result, t.parent_id
FROM holdfast.tasks t
-- With a limit it stays a look-up by all three, and none of another index.
LEFT JOIN LATERAL (
    SELECT e.message_id, e.written_at, e.seq, e.body FROM holdfast.task_events e
    WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq = t.status_seq
    LIMIT 1
) m ON true;

-- The end of a child, or its removal, is known to its parent in the same transaction.
CREATE FUNCTION holdfast.wake_parent_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER wake_parent_task AFTER UPDATE OF state ON holdfast.tasks
    FOR EACH ROW
    WHEN (NEW.awaited AND NEW.state IN ('completed', 'failed', 'canceled', 'rejected')
          AND OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION holdfast.wake_parent_task();

CREATE FUNCTION holdfast.forget_task() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_task AFTER DELETE ON holdfast.tasks
    FOR EACH ROW WHEN (OLD.awaited OR OLD.has_inbox)
    EXECUTE FUNCTION holdfast.forget_task();
