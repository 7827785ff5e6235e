-- version: 1
-- Messages to running tasks.

-- Whether a task has a message of a topic that nobody received.
CREATE OR REPLACE FUNCTION holdfast.has_message(in_tenant text, in_task_id text, in_topic text)
RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT FROM holdfast.task_inbox i
        WHERE (i.tenant || E'\n' || i.task_id) = (in_tenant || E'\n' || in_task_id)
            AND i.topic = in_topic AND NOT i.received)
$$;
