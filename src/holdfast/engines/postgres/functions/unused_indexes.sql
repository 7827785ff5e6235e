-- version: 3
-- Indexes that only functions of earlier versions used, dropped once those are replaced: this file comes
-- after them.
DROP INDEX IF EXISTS holdfast.tasks_by_change;
DROP INDEX IF EXISTS holdfast.task_contexts_by_age;
DROP INDEX IF EXISTS holdfast.tasks_of_parent;
DROP INDEX IF EXISTS holdfast.task_inbox_waiting;
DROP INDEX IF EXISTS holdfast.tasks_by_submit_key;
DROP INDEX IF EXISTS holdfast.task_messages_by_id;
DROP INDEX IF EXISTS holdfast.relationships_leaving;
DROP INDEX IF EXISTS holdfast.relationships_reaching;
DROP INDEX IF EXISTS holdfast.entities_by_number;
DROP INDEX IF EXISTS holdfast.tasks_by_owner;
DROP INDEX IF EXISTS holdfast.tasks_by_update;
DROP INDEX IF EXISTS holdfast.task_contexts_by_owner;
DROP INDEX IF EXISTS holdfast.sessions_by_start;
DROP INDEX IF EXISTS holdfast.sessions_of_agent;
DROP INDEX IF EXISTS holdfast.sessions_by_key;
