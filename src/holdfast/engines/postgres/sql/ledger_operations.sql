-- name: counts
-- How many tasks match, by state or by agent ($11), among the first so many ($12) and one more.
SELECT f.name, count(*) FILTER (WHERE f.place <= $12) AS found, max(f.place) > $12 AS capped
FROM (
    SELECT CASE WHEN $11 = 'state' THEN t.state ELSE t.agent END AS name,
           row_number() OVER () AS place
    FROM holdfast.tasks t
    WHERE t.tenant = $1
        AND ($2::text IS NULL OR t.owner = $2)
        AND ($3::text IS NULL OR t.context_key = ANY (ARRAY(
            SELECT c.key FROM holdfast.task_contexts c
            WHERE c.tenant = $1 AND c.id = $3 AND ($2::text IS NULL OR c.owner = $2))))
        AND ($4::text IS NULL OR t.agent = $4)
        AND ($5::timestamptz IS NULL OR t.updated_at >= $5)
        AND ($6::text[] IS NULL OR t.state = ANY ($6))
        AND ($7::timestamptz IS NULL OR t.updated_at < $7)
        AND ($8::text IS NULL OR starts_with(t.id, $8))
        AND ($9::text IS NULL OR t.worker = $9)
        AND ($10::text IS NULL OR holdfast.task_says(t.tenant, t.id, $10))
    LIMIT $12 + 1
) f
GROUP BY f.name ORDER BY f.name;

-- name: versions
-- The tasks whose state changed last ($3), of an owner ($2) or of all.
SELECT t.id, t.version FROM holdfast.tasks t
WHERE t.tenant = $1 AND ($2::text IS NULL OR t.owner = $2)
ORDER BY t.updated_at DESC, t.id DESC LIMIT $3;

-- name: workers
-- The workers that hold tasks of an owner ($2) or of all, with the tasks and their leases.
SELECT t.worker, array_agg(t.id ORDER BY t.id) AS ids, min(t.lease_expires_at) AS expires_at,
       max(t.lease_expires_at - make_interval(secs => t.lease_seconds)) AS beat_at,
       max(t.app_version) AS version
FROM holdfast.tasks t
WHERE t.tenant = $1 AND t.state = 'working' AND t.worker <> ''
    AND ($2::text IS NULL OR t.owner = $2)
GROUP BY t.worker ORDER BY t.worker;

-- name: find
-- The lowest ids ($12 limit) of tasks that match and that an operation ($11) can be done to.
SELECT t.id FROM holdfast.tasks t
    WHERE t.tenant = $1
        AND ($2::text IS NULL OR t.owner = $2)
        AND ($3::text IS NULL OR t.context_key = ANY (ARRAY(
            SELECT c.key FROM holdfast.task_contexts c
            WHERE c.tenant = $1 AND c.id = $3 AND ($2::text IS NULL OR c.owner = $2))))
        AND ($4::text IS NULL OR t.agent = $4)
        AND ($5::timestamptz IS NULL OR t.updated_at >= $5)
        AND ($6::text[] IS NULL OR t.state = ANY ($6))
        AND ($7::timestamptz IS NULL OR t.updated_at < $7)
        AND ($8::text IS NULL OR starts_with(t.id, $8))
        AND ($9::text IS NULL OR t.worker = $9)
        AND ($10::text IS NULL OR holdfast.task_says(t.tenant, t.id, $10))
    AND CASE $11::text
        WHEN 'cancel' THEN t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
        WHEN 'pause' THEN t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
            AND NOT t.adopted
        ELSE t.state IN ('completed', 'failed', 'canceled', 'rejected') AND NOT t.adopted
            AND NOT EXISTS (
                SELECT FROM holdfast.tasks n
                WHERE n.tenant = $1 AND n.submit_key <> ''
                    AND n.owner = t.owner AND n.submit_key = 'holdfast.retry/' || t.id)
        END
ORDER BY t.id LIMIT $12;

-- name: many
-- Carry out an operation on the first of these ($13 limit; $12 is one more): what it was done to, and
-- whether there are more, in at least one row.
WITH found AS MATERIALIZED (
    SELECT t.id FROM holdfast.tasks t
        WHERE t.tenant = $1
            AND ($2::text IS NULL OR t.owner = $2)
            AND ($3::text IS NULL OR t.context_key = ANY (ARRAY(
                SELECT c.key FROM holdfast.task_contexts c
                WHERE c.tenant = $1 AND c.id = $3 AND ($2::text IS NULL OR c.owner = $2))))
            AND ($4::text IS NULL OR t.agent = $4)
            AND ($5::timestamptz IS NULL OR t.updated_at >= $5)
            AND ($6::text[] IS NULL OR t.state = ANY ($6))
            AND ($7::timestamptz IS NULL OR t.updated_at < $7)
            AND ($8::text IS NULL OR starts_with(t.id, $8))
            AND ($9::text IS NULL OR t.worker = $9)
            AND ($10::text IS NULL OR holdfast.task_says(t.tenant, t.id, $10))
        AND CASE $11::text
            WHEN 'cancel' THEN t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
            WHEN 'pause' THEN t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
                AND NOT t.adopted
            ELSE t.state IN ('completed', 'failed', 'canceled', 'rejected') AND NOT t.adopted
                AND NOT EXISTS (
                    SELECT FROM holdfast.tasks n
                    WHERE n.tenant = $1 AND n.submit_key <> ''
                        AND n.owner = t.owner AND n.submit_key = 'holdfast.retry/' || t.id)
            END
    ORDER BY t.id LIMIT $12
)
SELECT r.*, (SELECT count(*) FROM found) > $13 AS more
FROM (VALUES (1)) one
LEFT JOIN LATERAL holdfast.request_of_tasks(
    holdfast.acting($17, $1), ARRAY(SELECT f.id FROM found f ORDER BY f.id LIMIT $13), $11, $14, $15::text[], $16::text[]
) r ON true;
