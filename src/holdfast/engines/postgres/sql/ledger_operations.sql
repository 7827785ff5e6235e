-- name: counts
-- How many tasks match, by state or by agent ($11), among the first so many ($12) and one more.
SELECT f.name, count(*) FILTER (WHERE f.place <= $12) AS found, max(f.place) > $12 AS capped
FROM (
    SELECT CASE WHEN $11 = 'state' THEN t.state ELSE t.agent END AS name,
           row_number() OVER () AS place
    FROM holdfast.matching_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true) t
    LIMIT $12 + 1
) f
GROUP BY f.name ORDER BY f.name;

-- name: versions
-- The tasks whose state changed last ($3), of an owner ($2) or of all.
SELECT t.id, t.version FROM holdfast.tasks t
WHERE t.tenant = $1 AND ($2::text IS NULL OR t.owner = $2) AND t.updated_at > '-infinity'
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
SELECT t.id FROM holdfast.operable_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) t
ORDER BY t.id LIMIT $12;

-- name: many
-- Carry out an operation on the first of these ($13 limit; $12 is one more): what it was done to, and
-- whether there are more, in at least one row.
WITH found AS MATERIALIZED (
    SELECT t.id FROM holdfast.operable_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) t
    ORDER BY t.id LIMIT $12
)
SELECT r.*, (SELECT count(*) FROM found) > $13 AS more
FROM (VALUES (1)) one
LEFT JOIN LATERAL holdfast.request_of_tasks(
    holdfast.acting($17, $1), ARRAY(SELECT f.id FROM found f ORDER BY f.id LIMIT $13), $11, $14, $15::text[], $16::text[]
) r ON true;
