-- version: 5
-- The search in the index of words.

-- BM25 adds up what each lexeme of a question gives to an event, and that is bounded: by how rare the
-- lexeme is, and by how often it stands in one event at most. So lexemes are read from rare to common
-- until all others together could give less than the last of the best has already. Then no other event
-- can be among the best, and the common lexemes are only looked up for events that still can. Where most
-- postings would be read anyway, all are: that is cheaper.
--
-- The numbers of the best of an agent's events that the filters allow, and of all that are as good as the
-- last of them or almost, ascending. Lexemes are given from rare to common: the levels of the groups in
-- which each may be, how many events have it, what it weighs, and what it gives at most. in_session has the numbers of a session, ascending, or is NULL.
DROP FUNCTION IF EXISTS holdfast.word_candidates(
    text, int, double precision, text[], bigint[], double precision[], double precision[], bigint,
    int[], text[], timestamptz, timestamptz, text, jsonpath, jsonb, double precision,
    double precision);
CREATE OR REPLACE FUNCTION holdfast.word_candidates(
    the_tenant text, the_key int, levels int[], average double precision, lexemes text[], holding bigint[],
    weights double precision[], gains double precision[], the_limit bigint, in_session int[],
    the_types text[], the_since timestamptz, the_until timestamptz, the_owner text,
    the_path jsonpath, the_values jsonb, k1 double precision, b double precision
) RETURNS int[]
LANGUAGE plpgsql STABLE
-- What is looked up is looked up by its key, whatever the planner thinks of arrays and of tables
-- without statistics: OFFSET 0 keeps look-ups from becoming joins.
SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    few CONSTANT bigint := 1000;
    -- Sums of the same numbers in another order differ by far less; and so do scores that are equal.
    almost CONSTANT double precision := 1e-8;
    unfiltered CONSTANT boolean :=
        num_nonnulls(the_types, the_since, the_until, the_owner, the_path) = 0;
    every CONSTANT int := cardinality(lexemes);
    from_number int := COALESCE(in_session[1], 0);
    to_number int := COALESCE(in_session[cardinality(in_session)], 2147483647);
    -- What all lexemes after one give at most.
    rests double precision[];
    postings bigint := 0;
    -- The lexemes up to here are read; so many postings; and what the others give at most.
    reading int;
    reads bigint := 0;
    rest double precision := 0;
    known double precision;
    twice bigint;
    -- The events that may be among the best, with what they have of the lexemes that were read.
    numbers int[];
    scores double precision[];
BEGIN
    rests[every] := 0;
    FOR at IN REVERSE every..1 LOOP
        rests[at - 1] := rests[at] + gains[at];
        postings := postings + holding[at];
    END LOOP;
    reading := every;
    IF postings > few THEN
        -- Begin with what is probably enough: in a text of average length a lexeme gives its weight.
        FOR at IN 1..every LOOP
            reading := at;
            reads := reads + holding[at];
            IF reads >= the_limit THEN
                known := COALESCE(known, weights[at]);
            END IF;
            EXIT WHEN known > rests[at];
        END LOOP;
    END IF;
    LOOP
        IF reading = every OR 2 * reads > postings THEN
            reading := every;
            rest := 0;
        ELSE
            rest := rests[reading];
        END IF;
        -- An array that is a variable is copied at each call of width_bucket; one in a row is not.
        WITH in_row AS MATERIALIZED (
            SELECT in_session AS numbers
        ), given AS NOT MATERIALIZED (
            SELECT l.first + (p >> l.number_bits)::int AS number,
                   q.weight * (((p >> l.times_bits) & l.times_mask)::double precision * (k1 + 1)
                     / (((p >> l.times_bits) & l.times_mask)::double precision
                        + k1 * (1 - b + b * ((p & l.length_mask)::double precision / average)))) AS gain
            FROM in_row i
            CROSS JOIN unnest(lexemes[:reading], weights[:reading], levels[:reading])
                AS q (lexeme, weight, levels)
            CROSS JOIN LATERAL (
                SELECT * FROM holdfast.word_rows(the_key, q.levels, q.lexeme)
                WHERE first <= to_number AND last >= from_number
                OFFSET 0
            ) l
            CROSS JOIN LATERAL unnest(l.postings) AS p
            WHERE i.numbers IS NULL OR i.numbers[
                width_bucket(l.first + (p >> l.number_bits)::int, i.numbers)]
                    = l.first + (p >> l.number_bits)::int
        ), sums AS MATERIALIZED (
            SELECT number, gain AS score FROM given WHERE reading = 1
            UNION ALL
            SELECT number, sum(gain) FROM given WHERE reading > 1 GROUP BY number
        ), last AS MATERIALIZED (
            SELECT COALESCE((
                SELECT s.score FROM sums s WHERE unfiltered
                ORDER BY s.score DESC OFFSET the_limit - 1 LIMIT 1
            ), (
                -- From the best down, until so many are allowed.
                SELECT s.score FROM (
                    SELECT * FROM sums WHERE NOT unfiltered ORDER BY score DESC OFFSET 0
                ) s
                CROSS JOIN LATERAL (
                    SELECT * FROM holdfast.event_numbers
                    WHERE agent_key = the_key AND number = s.number OFFSET 0
                ) x
                WHERE holdfast.event_passes(
                    the_tenant, x.session_key, x.epoch, x.seq, the_types, the_since, the_until,
                    the_owner, the_path, the_values)
                ORDER BY s.score DESC OFFSET the_limit - 1 LIMIT 1
            )) - almost AS score
        )
        SELECT array_agg(s.number ORDER BY s.number), array_agg(s.score ORDER BY s.number)
        INTO numbers, scores
        FROM last CROSS JOIN sums s
        WHERE (reading = every OR rest < last.score)
            AND (last.score IS NULL OR s.score + rest >= last.score)
            AND (unfiltered OR (
                SELECT holdfast.event_passes(
                    the_tenant, x.session_key, x.epoch, x.seq, the_types, the_since, the_until,
                    the_owner, the_path, the_values)
                FROM holdfast.event_numbers x
                WHERE x.agent_key = the_key AND x.number = s.number));
        IF reading = every THEN
            RETURN holdfast.first_of_ties(the_tenant, the_key, numbers, scores, the_limit);
        END IF;
        EXIT WHEN cardinality(numbers) <= holding[reading + 1];
        twice := 2 * reads;
        WHILE reading < every AND reads < twice LOOP
            reading := reading + 1;
            reads := reads + holding[reading];
        END LOOP;
    END LOOP;

    -- Each lexeme that is looked up leaves fewer events to look the next one up for.
    WHILE reading < every AND cardinality(numbers) > the_limit LOOP
        reading := reading + 1;
        rest := rests[reading];
        WITH sums AS MATERIALIZED (
            SELECT g.number, sum(g.gain) AS score
            FROM (
                SELECT * FROM unnest(numbers, scores) AS s (number, gain)
                UNION ALL
                SELECT numbers[f.at], weights[reading] * (f.times * (k1 + 1)
                         / (f.times + k1 * (1 - b + b * (f.length / average))))
                FROM holdfast.postings_of(
                    the_key, levels[reading], lexemes[reading], numbers) f
            ) g
            GROUP BY g.number
        ), last AS MATERIALIZED (
            SELECT score - almost AS score FROM sums ORDER BY score DESC OFFSET the_limit - 1 LIMIT 1
        )
        SELECT array_agg(s.number ORDER BY s.number), array_agg(s.score ORDER BY s.number)
        INTO numbers, scores
        FROM last JOIN sums s ON s.score + rest >= last.score;
    END LOOP;
    RETURN CASE WHEN reading = every
        THEN holdfast.first_of_ties(the_tenant, the_key, numbers, scores, the_limit)
        ELSE COALESCE(numbers, '{}') END;
END
$$;

-- The numbers of an agent's events, ascending, with fewer of those whose scores equal that of the last of the
-- best, if there are very many: a word that stands in every event gives all of them the same. The first by
-- session, epoch and seq stay, as in search_events.
CREATE OR REPLACE FUNCTION holdfast.first_of_ties(
    the_tenant text, the_key int, the_numbers int[], the_scores double precision[],
    the_limit bigint
) RETURNS int[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off
SET enable_seqscan = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    almost CONSTANT double precision := 1e-8;
    last double precision;
    spread double precision;
BEGIN
    IF the_numbers IS NULL OR cardinality(the_numbers) <= 4 * the_limit THEN
        RETURN COALESCE(the_numbers, '{}');
    END IF;
    SELECT s INTO last FROM unnest(the_scores) AS s ORDER BY s DESC OFFSET the_limit - 1 LIMIT 1;
    SELECT max(s) - min(s) INTO spread FROM unnest(the_scores) AS s WHERE abs(s - last) <= almost;
    IF spread >= 1e-9 THEN
        -- Not one tie but several, next to each other.
        RETURN the_numbers;
    END IF;
    RETURN ARRAY(
        SELECT b.number FROM unnest(the_numbers, the_scores) AS b (number, score)
        WHERE b.score > last + almost
        UNION ALL
        (
            WITH tied AS MATERIALIZED (
                SELECT x.number, x.session_key, x.epoch, x.seq
                FROM unnest(the_numbers, the_scores) AS b (number, score)
                CROSS JOIN LATERAL (
                    SELECT * FROM holdfast.event_numbers
                    WHERE agent_key = the_key AND number = b.number OFFSET 0
                ) x
                WHERE b.score <= last + almost
            ), named AS MATERIALIZED (
                SELECT k.session_key, s.id
                FROM (SELECT DISTINCT session_key FROM tied) k
                CROSS JOIN LATERAL (
                    SELECT id FROM holdfast.sessions
                    WHERE tenant = the_tenant AND key = k.session_key OFFSET 0
                ) s
            )
            SELECT t.number FROM tied t JOIN named n ON n.session_key = t.session_key
            ORDER BY n.id, t.epoch, t.seq LIMIT the_limit
        )
        ORDER BY 1);
END
$$;

-- Whether an event passes the filters.
CREATE OR REPLACE FUNCTION holdfast.event_passes(
    the_tenant text, the_session bigint, the_epoch int, the_seq bigint, the_types text[],
    the_since timestamptz, the_until timestamptz, the_owner text, the_path jsonpath,
    the_values jsonb
) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM (
            -- In the order of seq, which only the primary key has.
            SELECT * FROM holdfast.events
            WHERE tenant = the_tenant AND session_key = the_session AND epoch = the_epoch
                AND seq BETWEEN the_seq AND the_seq
            ORDER BY seq LIMIT 1
        ) e
        WHERE (the_types IS NULL OR e.type = ANY (the_types))
            AND (the_since IS NULL OR e.occurred_at >= the_since)
            AND (the_until IS NULL OR e.occurred_at < the_until)
            AND (the_owner IS NULL OR e.owner = the_owner)
            AND (the_path IS NULL OR holdfast.payload_fits(
                e.filterable, e.body, the_path, the_values)));
END
$$;
