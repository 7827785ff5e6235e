-- Writes to working states that were taken here because Redis did not answer: one row for a session,
-- all of them put together, until Redis has them too.

CREATE SEQUENCE holdfast.state_aside_stamps;

-- fresh: the state was replaced, cleared: it was removed, at some time since Redis went; gone: it is
-- removed now. state and dropped: the values that were written, as escaped JSON texts, and the keys that
-- were removed since. A higher stamp is a later write.
CREATE TABLE holdfast.state_asides (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL DEFAULT nextval('holdfast.state_aside_stamps'),
    fresh boolean NOT NULL,
    cleared boolean NOT NULL,
    gone boolean NOT NULL,
    state jsonb NOT NULL,
    dropped text[] COLLATE "C" NOT NULL,
    ttl_seconds double precision,
    written_at timestamptz NOT NULL DEFAULT holdfast.now(),
    PRIMARY KEY (tenant, session_id)
);
