-- name: rewrite
-- Statements that rewrite each table with its indexes, and the planner's statistics at the end.
SELECT format('VACUUM (FULL, ANALYZE) %s', c.oid::regclass)
FROM pg_catalog.pg_class c
WHERE c.relnamespace = to_regnamespace('holdfast') AND c.relkind = 'r'
UNION ALL
SELECT format('VACUUM (FULL) pg_catalog.%I', name)
FROM unnest(ARRAY['pg_statistic', 'pg_statistic_ext_data']) AS name;

-- name: switch
-- End the segment of the log that is written. An empty one would not be ended, so write a record first.
SELECT pg_switch_wal() FROM (
    SELECT pg_logical_emit_message(false, 'holdfast', 'scrub') OFFSET 0
) AS written;

-- name: segments_to_come
-- How many segments have been renamed to be written later.
SELECT count(*)::int FROM pg_ls_waldir() AS segment
WHERE segment.name ~ '^[0-9A-F]{24}$' AND segment.name > pg_walfile_name(pg_current_wal_insert_lsn());
