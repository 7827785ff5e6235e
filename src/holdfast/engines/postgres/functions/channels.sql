-- version: 2
-- Channels.

-- Appends an event, or finds the one with the same id, and wakes who listens.
--
-- Publishers of one channel wait for each other on its counter: an event is visible before the next
-- one gets its number, so that no reader ever passes one by.
CREATE OR REPLACE FUNCTION holdfast.publish(
    in_tenant text, in_channel text, in_id text, in_event text,
    in_retention_seconds double precision,
    OUT out_number bigint, OUT out_published_at timestamptz
)
LANGUAGE plpgsql
AS $$
DECLARE
    counter bigint;
    stored holdfast.channel_events;
BEGIN
    LOOP
        SELECT c.newest INTO counter FROM holdfast.channels c
        WHERE c.tenant = in_tenant AND c.name = in_channel FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO holdfast.channels VALUES (in_tenant, in_channel, 0) ON CONFLICT DO NOTHING;
    END LOOP;
    out_published_at := holdfast.now();
    SELECT * INTO stored FROM holdfast.channel_events e
    WHERE e.tenant = in_tenant AND e.channel = in_channel AND e.id = in_id
      AND e.expires_at > out_published_at;
    IF FOUND THEN
        IF stored.event <> in_event THEN
            PERFORM holdfast.fail('HF001', 'the id is another event''s',
                                  jsonb_build_object('kind', 'event', 'key', in_id));
        END IF;
        out_number := stored.number;
        out_published_at := stored.published_at;
        RETURN;
    END IF;
    out_number := counter + 1;
    UPDATE holdfast.channels c SET newest = out_number
    WHERE c.tenant = in_tenant AND c.name = in_channel;
    -- An expired event that had the id gives way.
    INSERT INTO holdfast.channel_events VALUES (
        in_tenant, in_channel, out_number, in_id, in_event, out_published_at,
        out_published_at + make_interval(secs => in_retention_seconds))
    ON CONFLICT (tenant, channel, id) DO UPDATE SET
        number = excluded.number, event = excluded.event,
        published_at = excluded.published_at, expires_at = excluded.expires_at;
    PERFORM holdfast.notify(in_tenant || E'\n' || in_channel);
END
$$;
