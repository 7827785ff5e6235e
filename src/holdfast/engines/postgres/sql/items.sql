-- name: put
-- Store and delete items, all or none; their new versions.
SELECT holdfast.put_items_about($1, $2, $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::double precision[], $9::bigint[], $10::text[]);

-- name: put_one
-- Store or delete one item with at most one vector; its new version.
SELECT holdfast.put_item($1, $2, $3::text[], $4, $5, $6, $7::text::jsonb, $8::real[]::public.vector, $9,
    $10, $11);

-- name: get
-- The items with the keys $4 in the namespaces with the path keys $3.
SELECT k.at, i.value, i.version, i.created_at, i.updated_at, i.expires_at, i.subject
FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS k (namespace, key, at)
CROSS JOIN LATERAL (
    SELECT n.tenant, n.number FROM holdfast.item_namespaces n
    WHERE n.tenant = $1 AND n.owner = $2 AND n.path_key = k.namespace
    LIMIT 1
) n
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.items i
    WHERE i.tenant = $1 AND i.namespace = n.number AND i.key = k.key
    LIMIT 1
) i
WHERE i.expires_at IS NULL OR i.expires_at > (SELECT holdfast.now());

-- name: get_one
-- The item with the key $4 in the namespace with the path key $3: without arrays of keys, whose length
-- the planner would look at in each call.
SELECT i.value, i.version, i.created_at, i.updated_at, i.expires_at, i.subject
FROM holdfast.item_namespaces n
JOIN holdfast.items i ON i.tenant = $1 AND i.namespace = n.number
WHERE n.tenant = $1 AND n.owner = $2 AND n.path_key = $3 AND i.key = $4
  AND (i.expires_at IS NULL OR i.expires_at > (SELECT holdfast.now()));

-- name: get_one_refreshed
-- The same, and its window starts again, if it has one.
WITH found AS MATERIALIZED (
    SELECT i.tenant, i.namespace, i.key, i.value, i.version, i.created_at, i.updated_at,
           i.expires_at, i.subject
    FROM holdfast.item_namespaces n
    JOIN holdfast.items i ON i.tenant = $1 AND i.namespace = n.number
    WHERE n.tenant = $1 AND n.owner = $2 AND n.path_key = $3 AND i.key = $4
      AND (i.expires_at IS NULL OR i.expires_at > (SELECT holdfast.now()))
), refreshed AS (
    UPDATE holdfast.items s
    SET expires_at = holdfast.seconds_after(/* alone: */(SELECT holdfast.now())/* end *//* distributed: holdfast.now() */, s.ttl_seconds)
    FROM found f
    WHERE f.expires_at IS NOT NULL
      AND s.tenant = $1 AND s.namespace = f.namespace AND s.key = f.key
    RETURNING s.value, s.version, s.created_at, s.updated_at, s.expires_at, s.subject
)
SELECT * FROM refreshed
UNION ALL
-- Without a window; or somebody deleted it in the meantime.
SELECT value, version, created_at, updated_at, expires_at, subject FROM found
WHERE NOT EXISTS (SELECT FROM refreshed);

-- name: get_refreshed
-- The same, sorted by namespace and key, and their windows start again.
SELECT at, value, version, created_at, updated_at, expires_at, subject
FROM holdfast.renew_items($1, $2, $3::text[], $4::text[]);

-- name: search
-- The items of the namespaces from the path key $3 to before $4 that pass a filter, for which TRUE
-- stands, by version: limit $5, offset $6.
SELECT n.path, d.key, d.value, d.version, d.created_at, d.updated_at, d.expires_at, d.subject,
       false AS extra
FROM holdfast.item_namespaces n
JOIN holdfast.items d ON d.tenant = n.tenant AND d.namespace = n.number
WHERE n.tenant = $1 AND n.owner = $2 AND n.path_key >= $3 AND n.path_key < $4
  AND d.tenant = $1 AND (d.expires_at IS NULL OR d.expires_at > (SELECT holdfast.now()))
  AND (/* filter */ TRUE)
ORDER BY d.version DESC LIMIT $5 OFFSET $6;

-- name: search_near
-- The same by the distance of the best vector from $7, whose dimension is $8; items without such a
-- vector come last. The caller computes the order again. So it also gets the items that 32 bits
-- cannot tell from the first or the last of the page: $9 is what two of them may be off.
WITH found AS MATERIALIZED (
    SELECT n.path, d.namespace, d.key, d.version, CASE
        -- Most items have one vector: a subquery for each of them takes longer than its distance.
        WHEN cardinality(d.vectors) > 1 THEN (
            SELECT min(v OPERATOR(public.<=>) (SELECT $7::real[]::public.vector))
            FROM unnest(d.vectors) v WHERE public.vector_dims(v) = $8
        )
        WHEN public.vector_dims(d.vectors[1]) = $8
            THEN d.vectors[1] OPERATOR(public.<=>) (SELECT $7::real[]::public.vector)
    END AS distance
    FROM holdfast.item_namespaces n
    JOIN holdfast.items d ON d.tenant = n.tenant AND d.namespace = n.number
    WHERE n.tenant = $1 AND n.owner = $2 AND n.path_key >= $3 AND n.path_key < $4
      AND d.tenant = $1 AND (d.expires_at IS NULL OR d.expires_at > (SELECT holdfast.now()))
      AND (/* filter */ TRUE)
), ranked AS MATERIALIZED (
    SELECT f.*, row_number() OVER (ORDER BY f.distance, f.version DESC) AS rank FROM found f
), page AS MATERIALIZED (
    SELECT r.* FROM ranked r
    WHERE (r.rank > $6 AND r.rank <= $6 + $5)
       OR (r.distance >= (SELECT b.distance FROM ranked b WHERE b.rank = $6 + 1) - $9
           AND (r.distance <= (SELECT b.distance FROM ranked b WHERE b.rank = $6 + $5) + $9)
               IS NOT FALSE)
)
SELECT p.path, d.key, d.value, d.version, d.created_at, d.updated_at, d.expires_at, d.subject,
       p.rank, p.rank <= $6 OR p.rank > $6 + $5 AS extra, ARRAY(
           SELECT public.vector_send(v) FROM unnest(d.vectors) v WHERE public.vector_dims(v) = $8
       ) AS vectors
FROM page p
JOIN holdfast.items d ON d.tenant = $1 AND d.namespace = p.namespace AND d.key = p.key;

-- name: refreshed
-- The rows of a search, whose statement takes the place of the page, and the windows of their items
-- start again. If there are extra rows, nothing is refreshed: the caller computes which it returns.
WITH page AS MATERIALIZED (
SELECT $3::text[] AS path, '' AS key, now() AS expires_at, false AS extra
), due AS MATERIALIZED (
    SELECT array_agg(to_jsonb(p.path)::text ORDER BY p.path, p.key) AS paths,
           array_agg(p.key ORDER BY p.path, p.key) AS keys
    FROM page p WHERE p.expires_at IS NOT NULL
    HAVING count(*) > 0 AND NOT EXISTS (SELECT FROM page WHERE extra)
), done AS MATERIALIZED (
    SELECT d.paths[r.at] AS path, d.keys[r.at] AS key, r.expires_at
    FROM due d CROSS JOIN LATERAL holdfast.renew_items($1, $2, d.paths, d.keys) r
)
SELECT p.*, d.expires_at AS refreshed_until
FROM page p LEFT JOIN done d ON d.path = to_jsonb(p.path)::text AND d.key = p.key;

-- name: list_namespaces
-- The paths that have items, from the path key $3 to before $4, with the labels $5 at their begin and $6 at their
-- end, where NULL is any label; cut to $7 labels. Limit $8, offset $9.
SELECT s.path FROM (
    SELECT DISTINCT CASE WHEN $7::bigint IS NULL OR $7 > 100 THEN n.path
                         ELSE n.path[1 : $7::int] END AS path
    FROM holdfast.item_namespaces n
    WHERE n.tenant = $1 AND n.owner = $2 AND n.path_key >= $3 AND n.path_key < $4
      AND cardinality(n.path) >= cardinality($5::text[])
      AND cardinality(n.path) >= cardinality($6::text[])
      AND NOT EXISTS (
          SELECT FROM unnest($5::text[]) WITH ORDINALITY AS w (label, at)
          WHERE n.path[w.at::int] <> w.label)
      AND NOT EXISTS (
          SELECT FROM unnest($6::text[]) WITH ORDINALITY AS w (label, at)
          WHERE n.path[cardinality(n.path) - cardinality($6::text[]) + w.at::int] <> w.label)
      AND EXISTS (
          SELECT FROM holdfast.items i
          WHERE i.tenant = $1 AND i.namespace = n.number
            AND (i.expires_at IS NULL OR i.expires_at > (SELECT holdfast.now())))
) s
ORDER BY s.path LIMIT $8 OFFSET $9;

-- name: purge
-- Delete items that have expired, of all tenants, a batch at a time; how many there were.
WITH due AS MATERIALIZED (
    SELECT tenant, namespace, key FROM holdfast.items
    WHERE expires_at <= (SELECT holdfast.now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast.items i USING due
    WHERE i.tenant = due.tenant AND i.namespace = due.namespace AND i.key = due.key
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: purge_namespaces
-- Delete namespaces without items, of all tenants: $1 at most.
SELECT holdfast.purge_item_namespaces($1);
