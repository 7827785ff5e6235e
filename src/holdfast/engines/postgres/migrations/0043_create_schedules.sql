-- Schedules, which make a task at each tick of a cron expression. Nobody's have the owner ''.
CREATE TABLE holdfast.schedules (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    -- No other schedule has it, also none that had the same id before: it is in the keys of tasks.
    uid text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text NOT NULL,
    agent text COLLATE "C" NOT NULL,
    message text NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    missed text COLLATE "C" NOT NULL,
    missed_limit bigint NOT NULL,
    grace_seconds double precision NOT NULL,
    max_attempts bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    paused boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- All ticks until then are decided.
    decided_until timestamptz NOT NULL,
    -- When a worker has to look at it; null if no tick comes any more.
    next_at timestamptz,
    last_run_at timestamptz,
    last_task_id text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, owner, id)
) WITH (fillfactor = 70);
CREATE INDEX schedules_due ON holdfast.schedules (tenant, next_at)
    WHERE next_at IS NOT NULL AND NOT paused;
