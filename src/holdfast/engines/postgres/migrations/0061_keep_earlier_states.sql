-- Earlier versions of working states.

ALTER TABLE holdfast.states
    -- How many versions of the state are kept, the newest included.
    ADD COLUMN kept_versions smallint NOT NULL DEFAULT 0;
ALTER TABLE holdfast.state_snapshots ADD COLUMN kept_versions smallint NOT NULL DEFAULT 0;

-- The versions of a state, the newest included, as long as there is a state. saved: of a hybrid, whose
-- states are in state_snapshots.
CREATE TABLE holdfast.earlier_states (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    saved boolean NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    written_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, session_id, saved, version)
);

CREATE FUNCTION holdfast.keep_earlier_state() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER keep_new_state AFTER INSERT ON holdfast.states
    FOR EACH ROW WHEN (NEW.kept_versions > 0)
    EXECUTE FUNCTION holdfast.keep_earlier_state();
CREATE TRIGGER keep_earlier_state AFTER UPDATE ON holdfast.states
    FOR EACH ROW WHEN (NEW.kept_versions > 0 OR OLD.kept_versions > 0 OR OLD.expires_at <= NEW.written_at)
    EXECUTE FUNCTION holdfast.keep_earlier_state();
CREATE TRIGGER keep_new_state AFTER INSERT ON holdfast.state_snapshots
    FOR EACH ROW WHEN (NEW.kept_versions > 0 AND NOT NEW.cleared)
    EXECUTE FUNCTION holdfast.keep_earlier_state();
CREATE TRIGGER keep_earlier_state AFTER UPDATE ON holdfast.state_snapshots
    FOR EACH ROW WHEN (
        NEW.version <> OLD.version AND (
            NEW.kept_versions > 0 OR OLD.kept_versions > 0 OR OLD.expires_at <= NEW.saved_at)
        OR NEW.cleared AND NOT OLD.cleared)
    EXECUTE FUNCTION holdfast.keep_earlier_state();

-- Whatever deletes a state deletes its versions, also a process of the landed version.
CREATE FUNCTION holdfast.forget_earlier_states() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_earlier_states AFTER DELETE ON holdfast.states
    FOR EACH ROW EXECUTE FUNCTION holdfast.forget_earlier_states();
CREATE TRIGGER forget_earlier_states AFTER DELETE ON holdfast.state_snapshots
    FOR EACH ROW EXECUTE FUNCTION holdfast.forget_earlier_states();
