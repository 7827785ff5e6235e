-- version: 1
-- What operators ask of many tasks.

-- The tenant, for a call whose events are to be stored with the name of who did it: the column has
-- it as its default.
CREATE OR REPLACE FUNCTION holdfast.acting(in_by text, in_tenant text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    IF in_by <> '' THEN
        PERFORM set_config('holdfast.by', in_by, true);
    END IF;
    RETURN in_tenant;
END
$$;

-- Whether a text of the first message of a task contains this; ASCII letters in any case. Both are
-- escaped as holdfast.filterable_of has it.
CREATE OR REPLACE FUNCTION holdfast.task_says(in_tenant text, in_id text, in_text text)
RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT coalesce((
        SELECT EXISTS (
            SELECT FROM jsonb_array_elements(
                CASE jsonb_typeof(m.payload -> 'content')
                     WHEN 'array' THEN m.payload -> 'content' ELSE '[]' END) AS block
            WHERE block ->> 'type' = 'text'
                AND position(lower(in_text COLLATE "C") IN lower((block ->> 'text') COLLATE "C")) > 0
        )
        FROM (
            SELECT replace(replace(replace(replace(
                e.body, '\\', E'\x02'), '\u0001', '\u00011'), '\u0000', '\u00010'), E'\x02', '\\'
            )::jsonb AS payload
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_id AND e.kind = 'message'
            ORDER BY e.seq LIMIT 1
        ) m
    ), false)
$$;

-- Carries out a request to tasks, the lowest id first, so that two of these never wait for each other.
-- The ids of those that it could be done to, and of the tasks that a retry made.
CREATE OR REPLACE FUNCTION holdfast.request_of_tasks(
    in_tenant text, in_ids text[], in_what text, in_note text,
    in_new_ids text[], in_message_ids text[]
) RETURNS TABLE (out_id text, out_new_id text, out_worker text)
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks;
    said holdfast.task_events;
    wanted text;
    next_id bigint := 1;
BEGIN
    FOREACH wanted IN ARRAY in_ids LOOP
        IF in_what = 'retry' THEN
            -- Not locked: the end is final, and clear_task_context locks a context before its tasks.
            SELECT * INTO task FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = wanted;
        ELSE
            SELECT * INTO task FROM holdfast.tasks t
            WHERE t.tenant = in_tenant AND t.id = wanted FOR NO KEY UPDATE;
        END IF;
        -- What has changed since it was found is left out.
        CONTINUE WHEN NOT FOUND OR task.adopted AND in_what <> 'cancel'
            OR (task.state IN ('completed', 'failed', 'canceled', 'rejected'))
               <> (in_what = 'retry');
        out_id := wanted;
        out_new_id := NULL;
        out_worker := task.worker;
        IF in_what = 'cancel' THEN
            PERFORM holdfast.cancel_task(in_tenant, wanted, NULL, in_note);
        ELSIF in_what = 'pause' THEN
            PERFORM holdfast.pause_task(in_tenant, wanted, NULL, in_note);
        ELSE
            SELECT * INTO said FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = wanted AND e.kind = 'message'
            ORDER BY e.seq LIMIT 1;
            SELECT r.id INTO out_new_id FROM holdfast.queue_task(
                in_tenant, in_new_ids[next_id], task.owner, task.context_id, '', task.agent,
                task.metadata, task.max_attempts, 'holdfast.retry/' || wanted, 'many', wanted, NULL,
                NULL, in_message_ids[next_id], holdfast.now(), said.body, said.digest, '{}', '{}',
                '{}', '{}', task.priority, task.limit_key, NULL) r;
            -- Another one retried it at the same moment.
            CONTINUE WHEN out_new_id <> in_new_ids[next_id];
            next_id := next_id + 1;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
