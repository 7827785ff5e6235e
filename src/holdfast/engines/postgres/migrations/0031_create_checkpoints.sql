-- Threads of graphs that run in steps. A write to an expired thread begins a new one.
CREATE TABLE holdfast.threads (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    -- What belongs to a thread names it by this, since long ids together do not fit an index entry.
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    ttl_seconds double precision,
    expires_at timestamptz,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, key)
) WITH (fillfactor = 70);
CREATE INDEX threads_expiry ON holdfast.threads (expires_at) WHERE expires_at IS NOT NULL;

-- The steps of a thread. Labels are JSON texts; versions name the values of channels.
CREATE TABLE holdfast.checkpoints (
    tenant text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    run text COLLATE "C",
    kind text NOT NULL,
    body bytea NOT NULL,
    metadata_kind text NOT NULL,
    metadata bytea NOT NULL,
    labels jsonb NOT NULL,
    versions jsonb NOT NULL,
    PRIMARY KEY (tenant, thread_key, namespace, id),
    FOREIGN KEY (tenant, thread_key) REFERENCES holdfast.threads (tenant, key) ON DELETE CASCADE
);
CREATE INDEX checkpoints_of_run ON holdfast.checkpoints (tenant, run) WHERE run IS NOT NULL;

-- The value of a channel at a version; without a kind the channel is empty there.
CREATE TABLE holdfast.checkpoint_values (
    tenant text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    kind text,
    data bytea,
    PRIMARY KEY (tenant, thread_key, namespace, channel, version),
    FOREIGN KEY (tenant, thread_key) REFERENCES holdfast.threads (tenant, key) ON DELETE CASCADE
);

-- What tasks wrote after a checkpoint, which may come before it does.
CREATE TABLE holdfast.checkpoint_writes (
    tenant text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    index int NOT NULL,
    path text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, thread_key, namespace, id, task, index),
    FOREIGN KEY (tenant, thread_key) REFERENCES holdfast.threads (tenant, key) ON DELETE CASCADE
);
