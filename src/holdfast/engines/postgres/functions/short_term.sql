-- version: 6
-- Working state.

-- The version after one of the same state: it tells nothing of how much others write. A new state has the
-- time as its version, which a state that was removed before cannot have had.
CREATE OR REPLACE FUNCTION holdfast.next_state_version(the_last bigint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT greatest(the_last + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) $$;

-- A moment so many seconds later. To add seconds does not depend on a time zone, so it gives one answer for
-- ever, and an upsert of a distributed table may call it.
CREATE OR REPLACE FUNCTION holdfast.seconds_after(the_time timestamptz, seconds double precision)
RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT
AS $$ BEGIN RETURN the_time + make_interval(secs => seconds); END $$;

-- Replaces or merges the state of a session if it is at the expected version; 0 is no state, and NULL
-- any version. in_versions is how many versions are kept, NULL as many as before. Returns the new version.
CREATE OR REPLACE FUNCTION holdfast.put_state(
    in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision,
    in_dropped text[], in_replace boolean, in_expected bigint, in_versions int
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    moment timestamptz;
    stored holdfast.states;
    actual bigint;
    put bigint;
    window_seconds double precision;
BEGIN
    LOOP
        SELECT * INTO stored FROM holdfast.states s
        WHERE s.tenant = in_tenant AND s.session_id = in_session_id FOR UPDATE;
        moment := holdfast.now();
        IF FOUND AND stored.expires_at <= moment THEN
            DELETE FROM holdfast.states s
            WHERE s.tenant = in_tenant AND s.session_id = in_session_id;
            stored := NULL;
        END IF;
        actual := coalesce(stored.version, 0);
        IF in_expected IS NOT NULL AND actual <> in_expected THEN
            PERFORM holdfast.fail('HF003', 'the state is at another version', jsonb_build_object(
                'kind', 'state', 'key', in_session_id, 'expected', in_expected, 'actual', actual));
        END IF;
        IF actual <> 0 THEN
            put := holdfast.next_state_version(actual);
            window_seconds := coalesce(in_ttl_seconds, stored.ttl_seconds);
            UPDATE holdfast.states s SET
                state = CASE WHEN in_replace THEN in_state
                             ELSE (s.state - in_dropped) || in_state END,
                version = put,
                ttl_seconds = window_seconds,
                written_at = moment,
                kept_versions = coalesce(in_versions, s.kept_versions),
                expires_at = moment + make_interval(secs => window_seconds)
            WHERE s.tenant = in_tenant AND s.session_id = in_session_id;
            RETURN put;
        END IF;
        INSERT INTO holdfast.states AS s
            (tenant, session_id, state, ttl_seconds, written_at, expires_at, kept_versions)
        VALUES (in_tenant, in_session_id, in_state, in_ttl_seconds, moment,
                moment + make_interval(secs => in_ttl_seconds), coalesce(in_versions, 0))
        ON CONFLICT (tenant, session_id) DO NOTHING
        RETURNING s.version INTO put;
        IF FOUND THEN
            RETURN put;
        END IF;
        -- Somebody made a state in the meantime: look at it.
    END LOOP;
END
$$;

-- After a write to a state: keep what it is now, and of the versions before it as many as are to be kept. A
-- state that was cleared or had expired leaves none.
CREATE OR REPLACE FUNCTION holdfast.keep_earlier_state() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    of_hybrid boolean := TG_TABLE_NAME = 'state_snapshots';
    is_over boolean := false;
    moment timestamptz;
    oldest bigint;
BEGIN
    -- Each table has columns that the other lacks, so that a record cannot be read by one expression.
    IF of_hybrid THEN
        moment := NEW.saved_at;
        is_over := NEW.cleared;
        IF TG_OP = 'UPDATE' THEN
            is_over := is_over OR OLD.cleared;
        END IF;
    ELSE
        moment := NEW.written_at;
    END IF;
    IF TG_OP = 'UPDATE' AND (
        is_over OR NEW.kept_versions = 0 OR coalesce(OLD.expires_at <= moment, false))
    THEN
        DELETE FROM holdfast.earlier_states e
        WHERE e.tenant = NEW.tenant AND e.session_id = NEW.session_id AND e.saved = of_hybrid;
    END IF;
    IF NEW.kept_versions = 0 THEN
        RETURN NULL;
    END IF;
    IF of_hybrid THEN
        IF NEW.cleared THEN
            RETURN NULL;
        END IF;
        INSERT INTO holdfast.earlier_states (tenant, session_id, saved, version, state, written_at)
        VALUES (NEW.tenant, NEW.session_id, true, NEW.version, NEW.state, moment)
        ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO holdfast.earlier_states (tenant, session_id, saved, version, state, written_at)
        VALUES (NEW.tenant, NEW.session_id, false, NEW.version, NEW.state::text, moment)
        ON CONFLICT DO NOTHING;
    END IF;
    SELECT e.version INTO oldest FROM holdfast.earlier_states e
    WHERE e.tenant = NEW.tenant AND e.session_id = NEW.session_id AND e.saved = of_hybrid
    ORDER BY e.version DESC OFFSET NEW.kept_versions LIMIT 1;
    IF oldest IS NOT NULL THEN
        DELETE FROM holdfast.earlier_states e
        WHERE e.tenant = NEW.tenant AND e.session_id = NEW.session_id AND e.saved = of_hybrid
            AND e.version <= oldest;
    END IF;
    RETURN NULL;
END
$$;

-- After a state was deleted: delete its versions.
CREATE OR REPLACE FUNCTION holdfast.forget_earlier_states() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM holdfast.earlier_states e
    WHERE e.tenant = OLD.tenant AND e.session_id = OLD.session_id
        AND e.saved = (TG_TABLE_NAME = 'state_snapshots');
    RETURN NULL;
END
$$;
