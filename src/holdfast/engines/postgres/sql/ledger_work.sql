-- Each walks an index from tenant to tenant, however many tasks a tenant has.

-- name: due
-- Tenants that have tasks to claim: $1 limit.
SELECT * FROM holdfast.tenants_due($1);

-- name: working
-- Tenants that have tasks at work: $1 limit.
SELECT * FROM holdfast.tenants_at_work($1);

-- name: deliveries
-- Tenants that have news to deliver: $1 limit.
SELECT * FROM holdfast.tenants_with_news($1);

-- name: uncopied
-- Tenants that have tasks at rest with messages to copy: $1 limit.
SELECT * FROM holdfast.tenants_with_copies($1);
-- name: cleanup
-- Tenants that have marks of ended tasks to carry out: $1 limit.
SELECT * FROM holdfast.tenants_to_clean($1);

-- name: survey
-- Tenants that have tasks to claim, tasks at work, messages to copy or marks to carry out, up to $1
-- each, of all tenants or of $2; and in how many seconds the next task becomes due.
SELECT * FROM holdfast.survey_work($1, $2);

-- name: ring
-- Notify workers: $1 topics. A notice is a hint, so its commit does not wait for the disk.
SELECT holdfast.ring(topic), set_config('synchronous_commit', 'off', true)
FROM unnest($1::text[]) AS topic;
