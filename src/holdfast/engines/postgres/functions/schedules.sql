-- version: 2
-- Schedules.

-- Stores a schedule from now on; one with the same digest stays as it is. Another one is replaced, or
-- raises.
CREATE OR REPLACE FUNCTION holdfast.put_schedule(
    in_tenant text, in_owner text, in_id text, in_uid text, in_cron text, in_timezone text,
    in_agent text, in_message text, in_context_id text, in_metadata text, in_missed text,
    in_missed_limit bigint, in_grace_seconds double precision, in_max_attempts bigint,
    in_digest text, in_replace boolean
) RETURNS SETOF holdfast.schedules
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    known holdfast.schedules;
BEGIN
    LOOP
        INSERT INTO holdfast.schedules (
            tenant, owner, id, uid, cron, timezone, agent, message, context_id, metadata, missed,
            missed_limit, grace_seconds, max_attempts, digest, created_at, updated_at,
            decided_until, next_at)
        VALUES (
            in_tenant, in_owner, in_id, in_uid, in_cron, in_timezone, in_agent, in_message,
            in_context_id, in_metadata, in_missed, in_missed_limit, in_grace_seconds,
            in_max_attempts, in_digest, v_now, v_now, v_now, v_now)
        ON CONFLICT DO NOTHING RETURNING * INTO known;
        EXIT WHEN FOUND;
        SELECT * INTO known FROM holdfast.schedules s
        WHERE s.tenant = in_tenant AND s.owner = in_owner AND s.id = in_id FOR UPDATE;
        -- Deleted meanwhile: there is room for it now.
        CONTINUE WHEN NOT FOUND;
        EXIT WHEN known.digest = in_digest;
        IF NOT in_replace THEN
            PERFORM holdfast.fail(
                'HF001',
                format('schedule %L is there with other content: use upsert to replace it', in_id),
                jsonb_build_object('kind', 'schedule', 'key', in_id));
        END IF;
        UPDATE holdfast.schedules s SET
            cron = in_cron, timezone = in_timezone, agent = in_agent, message = in_message,
            context_id = in_context_id, metadata = in_metadata, missed = in_missed,
            missed_limit = in_missed_limit, grace_seconds = in_grace_seconds,
            max_attempts = in_max_attempts, digest = in_digest, version = s.version + 1,
            updated_at = v_now, next_at = v_now,
            decided_until = CASE WHEN (s.cron, s.timezone) = (in_cron, in_timezone)
                                 THEN s.decided_until ELSE v_now END
        WHERE s.tenant = in_tenant AND s.owner = in_owner AND s.id = in_id RETURNING * INTO known;
        EXIT;
    END LOOP;
    RETURN NEXT known;
END
$$;

-- put_schedule, within what an owner may have.
CREATE OR REPLACE FUNCTION holdfast.store_schedule(
    in_tenant text, in_owner text, in_id text, in_uid text, in_cron text, in_timezone text,
    in_agent text, in_message text, in_context_id text, in_metadata text, in_missed text,
    in_missed_limit bigint, in_grace_seconds double precision, in_max_attempts bigint,
    in_digest text, in_replace boolean, in_most bigint
) RETURNS SETOF holdfast.schedules
LANGUAGE plpgsql
AS $$
BEGIN
    -- One after the other, so that each counts what the one before it stored.
    PERFORM pg_advisory_xact_lock(
        hashtextextended(E'holdfast schedules\n' || in_tenant || E'\n' || in_owner, 0));
    IF NOT EXISTS (
        SELECT FROM holdfast.schedules s
        WHERE s.tenant = in_tenant AND s.owner = in_owner AND s.id = in_id
    ) AND (
        SELECT count(*) FROM holdfast.schedules s WHERE s.tenant = in_tenant AND s.owner = in_owner
    ) >= in_most THEN
        PERFORM holdfast.fail(
            'HF001', format('owner %L has %s schedules: delete one first', in_owner, in_most),
            jsonb_build_object('kind', 'schedule', 'key', in_id));
    END IF;
    RETURN QUERY SELECT * FROM holdfast.put_schedule(
        in_tenant, in_owner, in_id, in_uid, in_cron, in_timezone, in_agent, in_message,
        in_context_id, in_metadata, in_missed, in_missed_limit, in_grace_seconds,
        in_max_attempts, in_digest, in_replace);
END
$$;

-- Submits the tasks of ticks and advances the schedule, in one transaction; nothing if the schedule
-- has changed since it was read, by another worker or by a client. The tasks are columns of equal
-- length, in the order of their ticks.
CREATE OR REPLACE FUNCTION holdfast.run_schedule(
    in_tenant text, in_owner text, in_id text, in_uid text, in_version bigint,
    in_until timestamptz, in_next_at timestamptz, in_last_run_at timestamptz,
    in_task_ids text[], in_new_context_ids text[], in_metadatas text[], in_submit_keys text[],
    in_digests text[], in_message_ids text[], in_message_at timestamptz, in_message_digest text
) RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
DECLARE
    schedule holdfast.schedules;
BEGIN
    UPDATE holdfast.schedules s SET
        version = s.version + 1, decided_until = in_until, next_at = in_next_at,
        last_run_at = coalesce(in_last_run_at, s.last_run_at),
        last_task_id = coalesce(in_task_ids[cardinality(in_task_ids)], s.last_task_id)
    WHERE s.tenant = in_tenant AND s.owner = in_owner AND s.id = in_id AND s.uid = in_uid
        AND s.version = in_version
    RETURNING * INTO schedule;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(in_task_ids) LOOP
        RETURN QUERY SELECT * FROM holdfast.submit_task(
            in_tenant, in_task_ids[i], in_owner, schedule.context_id, in_new_context_ids[i],
            schedule.agent, in_metadatas[i], schedule.max_attempts, in_submit_keys[i],
            in_digests[i], '', NULL, NULL, in_message_ids[i], in_message_at, schedule.message,
            in_message_digest, '{}', '{}', '{}', '{}');
    END LOOP;
END
$$;
