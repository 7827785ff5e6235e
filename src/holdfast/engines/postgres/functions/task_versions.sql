-- version: 1
-- Claims of processes that know no versions of handlers. This file is applied after those of claims,
-- so that each of these functions works at any time of an upgrade.

-- claim_due_tasks, for tasks that began without a version.
CREATE OR REPLACE FUNCTION holdfast.take_tasks(
    in_tenant text, in_worker text, in_agents text[], in_limit bigint,
    in_lease_seconds double precision, in_serial boolean, in_history bigint, in_limits jsonb
) RETURNS SETOF holdfast.claimed_task
LANGUAGE sql
AS $$
    SELECT c.id, c.context_id, c.agent, c.state, c.created_at, c.updated_at, c.owner, c.note,
           c.metadata, c.version, c.fence, c.attempts, c.max_attempts, c.worker,
           c.lease_expires_at, c.run_after, c.cancel_requested, c.pause_requested, c.submit_key,
           c.retry_of, c.message_ids, c.message_times, c.message_seqs, c.message_bodies,
           c.parent_id, c.priority, c.limit_key
    FROM holdfast.claim_due_tasks(
        in_tenant, in_worker, in_agents, in_limit, in_lease_seconds, in_serial, in_history,
        in_limits, NULL, '') c;
$$;

-- What take_tasks called before.
DROP FUNCTION IF EXISTS holdfast.choose_tasks(text, text[], bigint, boolean, timestamptz, jsonb);
DROP FUNCTION IF EXISTS holdfast.due_tasks(
    text, text[], bigint, boolean, timestamptz, smallint, tid[], bigint[], text[], text[]);
