-- version: 3
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

-- The tasks that a filter lists; what is null filters nothing. The planner puts it into the statement that
-- calls it. The condition on all tasks' time is that of the indexes of lists, which no look-up takes.
CREATE OR REPLACE FUNCTION holdfast.matching_tasks(
    in_tenant text, in_owner text, in_context_id text, in_agent text, in_after timestamptz,
    in_states text[], in_before timestamptz, in_prefix text, in_worker text, in_text text,
    in_children boolean
) RETURNS SETOF holdfast.tasks
LANGUAGE sql STABLE
AS $$
    SELECT t.* FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.updated_at > '-infinity'
        AND (in_owner IS NULL OR t.owner = in_owner)
        AND (in_context_id IS NULL OR t.context_key = ANY (ARRAY(
            SELECT c.key FROM holdfast.task_contexts c
            WHERE c.tenant = in_tenant AND c.id = in_context_id
                AND (in_owner IS NULL OR c.owner = in_owner))))
        AND (in_agent IS NULL OR t.agent = in_agent)
        AND (in_after IS NULL OR t.updated_at >= in_after)
        AND (in_states IS NULL OR t.state = ANY (in_states))
        AND (in_before IS NULL OR t.updated_at < in_before)
        AND (in_prefix IS NULL OR starts_with(t.id, in_prefix))
        AND (in_worker IS NULL OR t.worker = in_worker)
        AND (in_text IS NULL OR holdfast.task_says(t.tenant, t.id, in_text))
        AND (in_children OR t.parent_id = '')
$$;

-- Those of them that an operation can be done to.
CREATE OR REPLACE FUNCTION holdfast.operable_tasks(
    in_tenant text, in_owner text, in_context_id text, in_agent text, in_after timestamptz,
    in_states text[], in_before timestamptz, in_prefix text, in_worker text, in_text text,
    in_what text
) RETURNS SETOF holdfast.tasks
LANGUAGE sql STABLE
AS $$
    SELECT t.* FROM holdfast.matching_tasks(
        in_tenant, in_owner, in_context_id, in_agent, in_after, in_states, in_before, in_prefix,
        in_worker, in_text, true) t
    WHERE CASE in_what
        WHEN 'cancel' THEN t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
        WHEN 'pause' THEN t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
            AND NOT t.adopted
        ELSE t.state IN ('completed', 'failed', 'canceled', 'rejected') AND NOT t.adopted
            AND NOT EXISTS (
                SELECT FROM holdfast.tasks n
                WHERE n.tenant = in_tenant AND n.submit_key <> ''
                    AND n.owner = t.owner AND n.submit_key = 'holdfast.retry/' || t.id)
        END
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
