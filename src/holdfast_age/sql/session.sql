-- name: load_library
-- Any function of AGE loads its library, and with it the parser of cypher(); LOAD needs a superuser.
SELECT ag_catalog.agtype_out(ag_catalog.agtype_in('0'::cstring))::text;

-- name: prepare
-- AGE looks its operators up by search_path. Without containment, {id: $id} is an equality, as in
-- openCypher, and finds its index. The setting is there since AGE 1.5.
SELECT set_config(s.name, s.value, false)
FROM (VALUES ('search_path', 'ag_catalog'), ('age.enable_containment', 'off')) AS s (name, value)
WHERE EXISTS (SELECT FROM pg_catalog.pg_settings p WHERE p.name = s.name);

-- name: graphs
-- The graphs of Holdfast, and whose they are.
SELECT g.name::text AS graph, pg_catalog.obj_description(g.namespace::oid, 'pg_namespace') AS about
FROM ag_catalog.ag_graph g
WHERE pg_catalog.starts_with(g.name::text, 'holdfast_')
ORDER BY 2, 1;

-- name: is_there
-- Whether a graph is complete: its last step is the remark that says whose it is.
SELECT EXISTS (
    SELECT FROM ag_catalog.ag_graph g
    WHERE g.name = $1::name
        AND pg_catalog.obj_description(g.namespace::oid, 'pg_namespace') IS NOT NULL);

-- name: lock
-- One creator of graphs at a time, until the transaction ends.
SELECT pg_advisory_xact_lock($1);

-- name: has_graph
-- Whether AGE knows a graph.
SELECT EXISTS (SELECT FROM ag_catalog.ag_graph g WHERE g.name = $1::name);

-- name: create_graph
-- The graph, with the one label of its vertices and the one of its edges.
SELECT ag_catalog.create_graph($1::name);

-- name: create_labels
-- The one label of its vertices, and the one of its edges.
SELECT ag_catalog.create_vlabel($1::cstring, 'Entity'),
       ag_catalog.create_elabel($1::cstring, 'Relationship');

-- name: remark
-- The statement that says whose the graph is.
SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text, $2::text);
