-- version: 4
-- Working state.

-- The version after one of the same state: it tells nothing of how much others write. A new state has the
-- time as its version, which a state that was removed before cannot have had.
CREATE OR REPLACE FUNCTION holdfast.next_state_version(the_last bigint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT greatest(the_last + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) $$;

-- Replaces or merges the state of a session if it is at the expected version; 0 is no state, and NULL
-- any version. Returns the new version.
CREATE OR REPLACE FUNCTION holdfast.put_state_at_version(
    in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision,
    in_dropped text[], in_replace boolean, in_expected bigint
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
                expires_at = moment + make_interval(secs => window_seconds)
            WHERE s.tenant = in_tenant AND s.session_id = in_session_id;
            RETURN put;
        END IF;
        INSERT INTO holdfast.states AS s
            (tenant, session_id, state, ttl_seconds, written_at, expires_at)
        VALUES (in_tenant, in_session_id, in_state, in_ttl_seconds, moment,
                moment + make_interval(secs => in_ttl_seconds))
        ON CONFLICT (tenant, session_id) DO NOTHING
        RETURNING s.version INTO put;
        IF FOUND THEN
            RETURN put;
        END IF;
        -- Somebody made a state in the meantime: look at it.
    END LOOP;
END
$$;
