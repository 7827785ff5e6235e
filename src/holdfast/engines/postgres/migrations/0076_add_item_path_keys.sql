-- A text for each path of labels, in the same order. Below a policy an index serves only comparisons that
-- tell nothing of a row, and those of arrays are none: a look-up by path read all namespaces of an owner.
CREATE FUNCTION holdfast.item_path_key(the_path text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT string_agg(replace(p.label, E'\x01', E'\x01\x02') || E'\x01\x01', '' ORDER BY p.at)
    FROM unnest(the_path) WITH ORDINALITY AS p (label, at));

ALTER TABLE holdfast.item_namespaces
    ADD COLUMN path_key text COLLATE "C" GENERATED ALWAYS AS (holdfast.item_path_key(path)) STORED;
CREATE UNIQUE INDEX item_namespaces_by_path_key ON holdfast.item_namespaces (tenant, owner, path_key);
