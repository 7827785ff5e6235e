-- Durable tasks: the tasks themselves, their timelines, contexts, feedback, push configs, outbox.
--
-- Whoever writes to a task, or to anything below it, holds the lock on its row. So timelines have
-- no gap and no duplicate, and the children need no foreign keys: clear_context removes them while
-- it holds the locks. Free text (notes, names, errors, urls, tokens) is kept as JSON text.

-- The legal moves: the table of holdfast.kernel.core.lifecycle, one row for each actor.
CREATE TABLE holdfast.task_edges (
    from_state text COLLATE "C",
    to_state text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL
);
INSERT INTO holdfast.task_edges (from_state, to_state, actor) VALUES
    (NULL, 'submitted', 'client'),
    ('submitted', 'working', 'worker'),
    ('submitted', 'paused', 'client'),
    ('submitted', 'canceled', 'client'),
    ('working', 'submitted', 'worker'),
    ('working', 'submitted', 'recovery'),
    ('working', 'input-required', 'worker'),
    ('working', 'auth-required', 'worker'),
    ('working', 'paused', 'worker'),
    ('working', 'paused', 'recovery'),
    ('working', 'completed', 'worker'),
    ('working', 'failed', 'worker'),
    ('working', 'failed', 'recovery'),
    ('working', 'canceled', 'worker'),
    ('working', 'canceled', 'recovery'),
    ('working', 'rejected', 'worker'),
    ('input-required', 'submitted', 'client'),
    ('input-required', 'paused', 'client'),
    ('input-required', 'canceled', 'client'),
    ('auth-required', 'submitted', 'client'),
    ('auth-required', 'paused', 'client'),
    ('auth-required', 'canceled', 'client'),
    ('paused', 'submitted', 'client'),
    ('paused', 'canceled', 'client');

-- Conversations that tasks share; an id is its owner's own.
CREATE TABLE holdfast.task_contexts (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    -- Tasks and messages name their context by this: long ids would not fit their indexes.
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, owner, id)
);
-- No index but the primary key begins with the tenant where a look-up by tenant and id could take it:
-- on a table without statistics the planner takes any of them, and reads all of a tenant.
CREATE INDEX task_contexts_by_age
    ON holdfast.task_contexts ((tenant || E'\n' || owner), created_at, id);

-- What a task is, where it is, and who holds it; all that happened to it is in its timeline.
CREATE TABLE holdfast.tasks (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    context_key bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    max_attempts bigint NOT NULL,
    submit_key text COLLATE "C" NOT NULL,
    submit_digest text COLLATE "C" NOT NULL,
    retry_of text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,

    state text COLLATE "C" NOT NULL,
    updated_at timestamptz NOT NULL,
    note text NOT NULL DEFAULT '""',
    status_seq bigint,
    version bigint NOT NULL,
    transitions bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    worker text COLLATE "C" NOT NULL DEFAULT '',
    -- Empty for a task that was claimed as the only one of its context, else its own id.
    lane text COLLATE "C" NOT NULL DEFAULT '',
    lease_expires_at timestamptz,
    run_after timestamptz,
    due_at timestamptz NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    pause_requested boolean NOT NULL DEFAULT false,
    ask_kind text COLLATE "C",
    ask_name text COLLATE "C",
    ask_occurrence bigint,
    has_push boolean NOT NULL DEFAULT false,
    has_step_chunks boolean NOT NULL DEFAULT false,
    -- Until then somebody follows the task and wants to be told of its events.
    followed_until timestamptz,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 70);

CREATE INDEX tasks_by_change ON holdfast.tasks ((tenant || E'\n' || owner), updated_at, id);
CREATE INDEX tasks_of_context ON holdfast.tasks (context_key);
CREATE UNIQUE INDEX tasks_by_submit_key
    ON holdfast.tasks (tenant, (owner || E'\n' || submit_key)) WHERE submit_key <> '';
-- What a claim looks at: only tasks that wait, however many have ended.
CREATE INDEX tasks_queue ON holdfast.tasks (tenant, due_at, id) WHERE state = 'submitted';
CREATE INDEX tasks_queue_of_context ON holdfast.tasks (context_key, due_at, id)
    WHERE state = 'submitted';
-- The tasks at work; it also keeps a second one out of a context that is worked on serially.
CREATE UNIQUE INDEX tasks_at_work ON holdfast.tasks (tenant, context_key, lane)
    WHERE state = 'working';

-- The timeline of a task: seq is 1, 2, 3 … and its last is the task's version.
CREATE TABLE holdfast.task_events (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    actor text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    -- A transition; its number counts transitions alone.
    number bigint,
    from_state text COLLATE "C",
    to_state text COLLATE "C",
    worker text COLLATE "C",
    attempt bigint,
    run_after timestamptz,
    -- A transition or a request.
    note text,
    request text COLLATE "C",
    -- A message, the message of a transition, or the message that is the result of a step.
    message_id text COLLATE "C",
    written_at timestamptz,
    context_key bigint,
    stored bigint,
    -- A step, or the step in which a chunk was written; step_key is all of it, and the task.
    step_key text COLLATE "C",
    step_kind text COLLATE "C",
    step_name text COLLATE "C",
    step_occurrence bigint,
    chunks bigint,
    -- What a message says, or what a step was called with.
    digest text COLLATE "C",
    -- A chunk of an artifact.
    artifact_id text COLLATE "C",
    append boolean,
    last_chunk boolean,
    name text,
    metadata text,
    -- The message's payload, the step's result, the chunk's parts.
    body text,
    PRIMARY KEY (tenant, task_id, seq)
);
-- What is looked up by a writer has one key beside the tenant. For a look-up by tenant, task and
-- something else, the planner may take any index that begins with tenant and task: as good on
-- average, but it reads the whole timeline of a task that is longer than others.
CREATE UNIQUE INDEX task_messages_by_id
    ON holdfast.task_events (tenant, (task_id || E'\n' || message_id)) WHERE kind = 'message';
CREATE INDEX task_messages_in_order ON holdfast.task_events (tenant, task_id, seq)
    WHERE kind = 'message';
CREATE INDEX task_messages_of_context ON holdfast.task_events (tenant, context_key, stored)
    WHERE kind = 'message';
CREATE UNIQUE INDEX task_steps_by_key ON holdfast.task_events (tenant, step_key)
    WHERE kind = 'step';
CREATE INDEX task_steps_in_order ON holdfast.task_events (tenant, task_id, seq)
    WHERE kind = 'step';
CREATE INDEX task_chunks ON holdfast.task_events (tenant, task_id, artifact_id, seq)
    WHERE kind = 'artifact';
CREATE INDEX task_chunks_of_step ON holdfast.task_events (tenant, step_key, fence, seq)
    WHERE kind = 'artifact' AND step_key IS NOT NULL;

-- Where an artifact was begun, where it last began anew, and its last chunk.
CREATE TABLE holdfast.task_artifacts (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    begun bigint NOT NULL,
    anew bigint NOT NULL,
    fence bigint NOT NULL,
    complete boolean NOT NULL,
    PRIMARY KEY (tenant, task_id, id)
) WITH (fillfactor = 70);

-- The order of messages in a context, over all its tasks.
CREATE SEQUENCE holdfast.task_messages_stored;

-- What somebody thought of a task, in the order it was given.
CREATE TABLE holdfast.task_feedback (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    given bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    text text NOT NULL,
    rating bigint,
    metadata text NOT NULL,
    digest text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, task_id, id)
);

-- Where to send the news of a task. The entries of one config are delivered one after the other:
-- next_* say which is next, and when; null when nothing is on its way.
CREATE TABLE holdfast.push_configs (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    url text NOT NULL,
    token text NOT NULL,
    authentication text NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    next_seq bigint,
    next_due_at timestamptz,
    next_number bigint,
    PRIMARY KEY (tenant, task_id, id)
);
CREATE INDEX push_configs_due ON holdfast.push_configs (tenant, next_due_at, next_number)
    WHERE next_seq IS NOT NULL;

-- Events on their way to push configs; dead ones were given up, and are kept for a while.
CREATE TABLE holdfast.outbox (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    config_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    due_at timestamptz NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '""',
    dead boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, task_id, config_id, seq)
);

CREATE INDEX outbox_dead ON holdfast.outbox (due_at) WHERE dead;

-- A task as clients get it: with the message of its last change of state, without all others.
CREATE VIEW holdfast.task_records AS
SELECT t.tenant, t.id, t.context_id, t.agent, t.state, t.created_at, t.updated_at, t.owner, t.note,
       t.metadata, t.version, t.fence, t.attempts, t.max_attempts, t.worker, t.lease_expires_at,
       t.run_after, t.cancel_requested, t.pause_requested, t.submit_key, t.retry_of,
       m.message_id AS status_id, m.written_at AS status_at, m.seq AS status_seq,
       m.body AS status_body
FROM holdfast.tasks t
-- With a limit it stays a look-up by all three, for the same reason.
LEFT JOIN LATERAL (
    SELECT e.message_id, e.written_at, e.seq, e.body FROM holdfast.task_events e
    WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq = t.status_seq
    LIMIT 1
) m ON true;

-- An entry of the outbox with the event and the push config.
CREATE VIEW holdfast.outbox_entries AS
SELECT o.config_id, o.due_at, o.attempts, o.last_error, o.dead, o.number AS place,
       p.url, p.token, p.authentication, e.*
FROM holdfast.outbox o
JOIN holdfast.push_configs p
    ON p.tenant = o.tenant AND p.task_id = o.task_id AND p.id = o.config_id
JOIN holdfast.task_events e
    ON e.tenant = o.tenant AND e.task_id = o.task_id AND e.seq = o.seq;

-- The last messages of a task, in order, as columns of equal length.
CREATE FUNCTION holdfast.task_messages(in_tenant text, in_task_id text, in_last bigint)
RETURNS TABLE (message_ids text[], message_times timestamptz[], message_seqs bigint[],
               message_bodies text[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(m.message_id), array_agg(m.written_at), array_agg(m.seq), array_agg(m.body)
    FROM (
        SELECT * FROM (
            SELECT e.message_id, e.written_at, e.seq, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
            ORDER BY e.seq DESC LIMIT in_last
        ) newest ORDER BY seq
    ) m
$$;

-- The chunks that the artifacts of a task are made of now, or one artifact, as columns of equal
-- length: artifacts in the order they were begun, chunks in order.
CREATE FUNCTION holdfast.task_artifacts(in_tenant text, in_task_id text, in_artifact_id text)
RETURNS TABLE (chunk_artifacts text[], chunk_times timestamptz[], chunk_bodies text[],
               chunk_appends boolean[], chunk_lasts boolean[], chunk_names text[],
               chunk_metadata text[])
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(c.artifact_id), array_agg(c.at), array_agg(c.body), array_agg(c.append),
           array_agg(c.last_chunk), array_agg(c.name), array_agg(c.metadata)
    FROM (
        SELECT e.artifact_id, e.at, e.body, e.append, e.last_chunk, e.name, e.metadata
        FROM holdfast.task_artifacts a
        JOIN holdfast.task_events e
            ON e.tenant = a.tenant AND e.task_id = a.task_id AND e.kind = 'artifact'
            AND e.artifact_id = a.id AND e.seq >= a.anew
        WHERE a.tenant = in_tenant AND a.task_id = in_task_id
            AND (in_artifact_id IS NULL OR a.id = in_artifact_id)
        ORDER BY a.begun, e.seq
    ) c
$$;
