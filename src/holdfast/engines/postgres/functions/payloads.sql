-- version: 1
-- Filters over the payloads of events, and the agents that have events.

-- What a filter sees of a body: the scalars at the top level, but for texts of more than 256 bytes. The
-- texts are escaped, since jsonb has no U+0000: it becomes U+0001 and a 0, and U+0001 becomes U+0001
-- and a 1. In a body both stand as escape sequences only. Python writes the same
-- (holdfast.engines.postgres.payloads).
CREATE OR REPLACE FUNCTION holdfast.filterable_of(the_body text) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT coalesce(jsonb_object_agg(field.key, field.value), '{}')
    FROM (
        -- A backslash of the text is two in a body; out of the way, each that is left begins a sequence.
        SELECT replace(replace(replace(replace(
            the_body, '\\', E'\x02'), '\u0001', '\u00011'), '\u0000', '\u00010'), E'\x02', '\\'
        )::jsonb AS payload
    ) body
    CROSS JOIN LATERAL jsonb_each(
        CASE jsonb_typeof(body.payload) WHEN 'object' THEN body.payload ELSE '{}' END) AS field
    WHERE CASE jsonb_typeof(field.value)
        -- Without U+0001 a text is as long as it was before it was escaped.
        WHEN 'string' THEN octet_length(replace(field.value #>> '{}', E'\x01', '')) <= 256
        WHEN 'object' THEN FALSE
        WHEN 'array' THEN FALSE
        ELSE TRUE
    END;
$$;

-- Whether an event passes a filter, which is a path with values.
CREATE OR REPLACE FUNCTION holdfast.payload_fits(
    the_filterable jsonb, the_body text, the_path jsonpath, the_values jsonb
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT jsonb_path_match(
        coalesce(the_filterable, holdfast.filterable_of(the_body)), the_path, the_values);
$$;

-- The first so many agents that have events, of those whose names begin with the_beginning and not with
-- the_other. It goes from agent to agent in the index, however many events each has.
CREATE OR REPLACE FUNCTION holdfast.agents_with_events(
    the_tenant text, the_beginning text, the_other text, the_limit int
) RETURNS SETOF text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    last text COLLATE "C" := the_beginning;
    found text COLLATE "C";
    count int := 0;
BEGIN
    WHILE count < the_limit LOOP
        SELECT e.agent INTO found FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.agent > last ORDER BY e.agent LIMIT 1;
        EXIT WHEN found IS NULL OR NOT starts_with(found, the_beginning);
        last := found;
        IF the_other <> '' AND starts_with(found, the_other) THEN
            -- Behind all that begin so: no text goes on with a greater character.
            last := the_other || chr(1114111);
        ELSE
            count := count + 1;
            RETURN NEXT found;
        END IF;
    END LOOP;
END
$$;
