-- name: put
-- Store a schedule, or find the one that is there.
SELECT * FROM holdfast.store_schedule(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: get
-- A schedule.
SELECT s.* FROM holdfast.schedules s WHERE s.tenant = $1 AND s.owner = $2 AND s.id = $3;

-- name: list
-- Schedules of an owner ($2) or of all, by owner and id, after one of them ($3, $4).
SELECT s.* FROM holdfast.schedules s
WHERE s.tenant = $1 AND ($2::text IS NULL OR s.owner = $2)
    AND ($3::text IS NULL OR (s.owner, s.id) > ($3, $4::text))
ORDER BY s.owner, s.id LIMIT $5;

-- name: set_paused
-- Pause or resume ($4); the same again changes nothing.
WITH changed AS (
    UPDATE holdfast.schedules s SET
        paused = $4, version = s.version + 1, updated_at = n.at, next_at = n.at,
        decided_until = CASE WHEN $4 THEN s.decided_until ELSE n.at END
    FROM (SELECT holdfast.now() AS at) n
    WHERE s.tenant = $1 AND s.owner = $2 AND s.id = $3 AND s.paused <> $4
    RETURNING s.*
)
SELECT * FROM changed
UNION ALL
SELECT s.* FROM holdfast.schedules s
WHERE s.tenant = $1 AND s.owner = $2 AND s.id = $3 AND NOT EXISTS (SELECT FROM changed);

-- name: delete
-- Remove a schedule; no row when there is none.
DELETE FROM holdfast.schedules s WHERE s.tenant = $1 AND s.owner = $2 AND s.id = $3
RETURNING true;

-- name: due
-- Schedules that are due, and the time in each row, in at least one row.
SELECT n.at AS now, s.*
FROM (SELECT holdfast.now() AS at) n
LEFT JOIN LATERAL (
    SELECT d.* FROM holdfast.schedules d
    WHERE d.tenant = $1 AND d.next_at <= n.at AND d.next_at IS NOT NULL AND NOT d.paused
    ORDER BY d.next_at LIMIT $2
) s ON true
ORDER BY s.next_at, s.owner, s.id;

-- name: defer
-- Let a schedule that cannot be run be due later ($6), unless it has changed.
UPDATE holdfast.schedules s SET next_at = holdfast.now() + make_interval(secs => $6)
WHERE s.tenant = $1 AND s.owner = $2 AND s.id = $3 AND s.uid = $4 AND s.version = $5;

-- name: run
-- Submit the tasks of ticks and advance the schedule.
SELECT * FROM holdfast.run_schedule(
    $1, $2, $3, $4, $5, $6, $7, $8, $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
    $14::text[], $15, $16);

-- name: scheduled
-- Tenants that have due schedules ($1 limit; of $2, if given), and in each row how many seconds there are until the
-- next one is due; in at least one row.
SELECT * FROM holdfast.tenants_scheduled($1, $2);
