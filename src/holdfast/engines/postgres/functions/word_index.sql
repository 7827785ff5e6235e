-- version: 2
-- The index of words, and the search in it.

-- Take ranges of an agent's queue and index their events: only ranges that nobody else took, and
-- only events that are still there. Whoever holds the row of the totals changes the index. What
-- belongs together is found by its place in the arrays: a planner that takes thousands of words for
-- ten would join them in nested loops.
CREATE OR REPLACE FUNCTION holdfast.index_events(
    the_tenant text, the_agent text,
    range_keys bigint[], range_epochs int[], range_starts bigint[],
    event_ranges int[], event_seqs bigint[], event_lengths int[],
    posting_events int[], posting_lexemes text[], posting_times int[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    taken boolean[] := array_fill(false, ARRAY[cardinality(range_keys)]);
    place int;
    -- The session of each event; 0 for one that is not to be indexed.
    keys bigint[];
BEGIN
    INSERT INTO holdfast.event_totals (tenant, agent) VALUES (the_tenant, the_agent)
    ON CONFLICT DO NOTHING;
    PERFORM FROM holdfast.event_totals t
    WHERE t.tenant = the_tenant AND t.agent = the_agent FOR UPDATE;

    FOR place IN
        DELETE FROM holdfast.unindexed_events u
        USING unnest(range_keys, range_epochs, range_starts) WITH ORDINALITY
            AS r (session_key, epoch, first_seq, at)
        WHERE u.tenant = the_tenant AND u.agent = the_agent AND u.session_key = r.session_key
            AND u.epoch = r.epoch AND u.first_seq = r.first_seq
        RETURNING r.at
    LOOP
        taken[place] := true;
    END LOOP;
    SELECT array_agg(COALESCE(e.session_key, 0) ORDER BY i.at) INTO keys
    FROM unnest(event_ranges, event_seqs) WITH ORDINALITY AS i (range, seq, at)
    -- In the order of seq, which only the primary key has: without statistics every index looks good.
    LEFT JOIN LATERAL (
        SELECT session_key FROM holdfast.events
        WHERE tenant = the_tenant AND session_key = range_keys[i.range]
            AND epoch = range_epochs[i.range] AND seq BETWEEN i.seq AND i.seq AND taken[i.range]
        ORDER BY seq LIMIT 1
    ) e ON true;

    WITH words AS MATERIALIZED (
        SELECT * FROM unnest(posting_events, posting_lexemes, posting_times)
            AS p (event, lexeme, times)
        WHERE keys[p.event] > 0
    ), kept AS (
        INSERT INTO holdfast.indexed_events (tenant, session_key, epoch, seq, length, lexemes)
        SELECT the_tenant, keys[w.event], range_epochs[event_ranges[w.event]],
               event_seqs[w.event], event_lengths[w.event],
               COALESCE(array_agg(w.lexeme) FILTER (WHERE w.lexeme IS NOT NULL), '{}')
        FROM (
            SELECT event, lexeme FROM words
            -- A text may have no words.
            UNION ALL SELECT n, NULL FROM generate_series(1, cardinality(keys)) AS n
        ) w
        WHERE keys[w.event] > 0
        GROUP BY w.event
    ), posted AS (
        INSERT INTO holdfast.event_postings
            (tenant, agent, lexeme, session_key, epoch, seq, times, length)
        SELECT the_tenant, the_agent, w.lexeme, keys[w.event],
               range_epochs[event_ranges[w.event]], event_seqs[w.event], w.times,
               event_lengths[w.event]
        FROM words w
    )
    INSERT INTO holdfast.event_lexemes AS l (tenant, agent, lexeme, documents, most)
    SELECT the_tenant, the_agent, w.lexeme, count(*), max(w.times) FROM words w GROUP BY w.lexeme
    ON CONFLICT (tenant, agent, lexeme) DO UPDATE
    SET documents = l.documents + excluded.documents, most = GREATEST(l.most, excluded.most);

    UPDATE holdfast.event_totals t
    SET documents = t.documents + n.documents, length = t.length + n.length
    FROM (SELECT count(*) AS documents, COALESCE(sum(i.length), 0) AS length
          FROM unnest(keys, event_lengths) AS i (key, length) WHERE i.key > 0) n
    WHERE t.tenant = the_tenant AND t.agent = the_agent;
END
$$;

-- BM25 adds up what each lexeme of a question gives to an event, and that is bounded: by how rare the
-- lexeme is, and by how often it stands in one event at most. So lexemes are read from rare to common
-- until all others together could give less than the last of the best has already. Then no other event
-- can be among the best, and the common lexemes are only looked up for events that still can. Few
-- postings are read whole, and so are all where most would be read anyway: that is cheaper.
--
-- The best of the events that the filters allow, and all that are as good as the last of them, in no
-- order, with the scores that reading everything would give, to the last bit: in the order of the
-- question.
CREATE OR REPLACE FUNCTION holdfast.rank_by_words(
    the_tenant text, the_agent text, the_lexemes text[], the_limit bigint, the_session text,
    the_types text[], the_since timestamptz, the_until timestamptz, the_owner text,
    the_path jsonpath, the_values jsonb,
    k1 double precision, b double precision
) RETURNS TABLE (session_key bigint, epoch int, seq bigint, score double precision)
LANGUAGE plpgsql STABLE ROWS 20
-- What is looked up is looked up by its key, whatever the planner thinks of arrays and of tables
-- without statistics: OFFSET 0 keeps look-ups from becoming joins, and only the primary key has events
-- in the order of seq. Sums are made by a hash: in the order in which their parts come, which a
-- sort would not keep.
SET plan_cache_mode = force_generic_plan
SET enable_sort = off
SET enable_bitmapscan = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET max_parallel_workers_per_gather = 0
AS $$
#variable_conflict use_column
DECLARE
    few CONSTANT bigint := 1000;
    -- Sums of the same numbers in another order differ by far less.
    almost CONSTANT double precision := 1 - 1e-9;
    unfiltered CONSTANT boolean :=
        num_nonnulls(the_types, the_since, the_until, the_owner, the_path) = 0;
    least_key bigint := -9223372036854775808;
    most_key bigint := 9223372036854775807;
    average double precision;
    -- The lexemes from rare to common: where each stands in the question, how many events have it,
    -- what it weighs, what it gives at most, and what all after it give at most.
    lexemes text[];
    places bigint[];
    holding bigint[];
    weights double precision[];
    gains double precision[];
    rests double precision[];
    every int;
    postings bigint;
    -- The lexemes up to here are read; so many postings; and what the others give at most.
    reading int;
    reads bigint := 0;
    rest double precision := 0;
    known double precision;
    twice bigint;
    -- The events that may be among the best, with what they have of the lexemes that were read.
    keys bigint[];
    epochs int[];
    seqs bigint[];
    scores double precision[];
BEGIN
    IF the_session IS NOT NULL THEN
        SELECT s.key, s.key INTO least_key, most_key FROM holdfast.sessions s
        WHERE s.tenant = the_tenant AND s.id = the_session;
    END IF;
    SELECT max(w.average), array_agg(w.lexeme), array_agg(w.at), array_agg(w.documents),
           array_agg(w.weight), array_agg(w.weight * w.saturation), count(*), sum(w.documents)
    INTO average, lexemes, places, holding, weights, gains, every, postings
    FROM (
        SELECT t.average, l.lexeme, q.at, l.documents,
               ln(1 + (t.documents - l.documents + 0.5) / (l.documents + 0.5)) AS weight,
               -- In the shortest text that the lexeme could stand in so often.
               l.most * (k1 + 1) / (l.most + k1 * (1 - b + b * (l.most / t.average))) AS saturation
        FROM unnest(the_lexemes) WITH ORDINALITY AS q (lexeme, at)
        CROSS JOIN (
            SELECT documents::double precision AS documents,
                   length::double precision / NULLIF(documents, 0) AS average
            FROM holdfast.event_totals WHERE tenant = the_tenant AND agent = the_agent
        ) t
        CROSS JOIN LATERAL (
            SELECT lexeme, documents::double precision AS documents, most::double precision AS most
            FROM holdfast.event_lexemes
            WHERE tenant = the_tenant AND agent = the_agent AND lexeme = q.lexeme OFFSET 0
        ) l
        ORDER BY l.documents, q.at
    ) w;
    IF every = 0 OR the_limit = 0 OR least_key IS NULL THEN
        RETURN;
    END IF;

    IF postings <= few AND unfiltered THEN
        -- To find out which are the best is left to who asks.
        RETURN QUERY
        SELECT g.session_key, g.epoch, g.seq, sum(g.gain)
        FROM (
            SELECT p.session_key, p.epoch, p.seq,
                   q.weight * (p.times * (k1 + 1)
                     / (p.times + k1 * (1 - b + b * (p.length / average)))) AS gain
            FROM (
                SELECT * FROM unnest(lexemes, weights, places) AS l (lexeme, weight, at) ORDER BY at
            ) q
            CROSS JOIN LATERAL (
                SELECT * FROM holdfast.event_postings
                WHERE tenant = the_tenant AND agent = the_agent AND lexeme = q.lexeme
                    AND session_key BETWEEN least_key AND most_key OFFSET 0
            ) p
            ORDER BY q.at
        ) g
        GROUP BY g.session_key, g.epoch, g.seq;
        RETURN;
    END IF;
    reading := every;
    IF postings > few THEN
        rests[every] := 0;
        FOR at IN REVERSE every - 1..1 LOOP
            rests[at] := rests[at + 1] + gains[at + 1];
        END LOOP;
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
        WITH given AS NOT MATERIALIZED (
            SELECT p.session_key, p.epoch, p.seq,
                   q.weight * (p.times * (k1 + 1)
                     / (p.times + k1 * (1 - b + b * (p.length / average)))) AS gain
            FROM (
                SELECT * FROM unnest(lexemes[:reading], weights[:reading], places[:reading])
                    AS l (lexeme, weight, at)
                ORDER BY at
            ) q
            CROSS JOIN LATERAL (
                SELECT * FROM holdfast.event_postings
                WHERE tenant = the_tenant AND agent = the_agent AND lexeme = q.lexeme
                    AND session_key BETWEEN least_key AND most_key OFFSET 0
            ) p
            ORDER BY q.at
        ), sums AS MATERIALIZED (
            SELECT session_key, epoch, seq, gain AS score FROM given WHERE reading = 1
            UNION ALL
            SELECT session_key, epoch, seq, sum(gain) FROM given WHERE reading > 1
            GROUP BY session_key, epoch, seq
        ), last AS MATERIALIZED (
            SELECT almost * COALESCE((
                SELECT s.score FROM sums s WHERE unfiltered
                ORDER BY s.score DESC OFFSET the_limit - 1 LIMIT 1
            ), (
                -- From the best down, until so many are allowed.
                SELECT s.score FROM (
                    SELECT * FROM sums WHERE NOT unfiltered ORDER BY score DESC OFFSET 0
                ) s
                WHERE EXISTS (
                    SELECT FROM (
                        SELECT * FROM holdfast.events
                        WHERE tenant = the_tenant AND session_key = s.session_key
                            AND epoch = s.epoch AND seq BETWEEN s.seq AND s.seq
                        ORDER BY seq LIMIT 1
                    ) e
                    WHERE (the_types IS NULL OR e.type = ANY (the_types))
                        AND (the_since IS NULL OR e.occurred_at >= the_since)
                        AND (the_until IS NULL OR e.occurred_at < the_until)
                        AND (the_owner IS NULL OR e.owner = the_owner)
                        AND (the_path IS NULL OR holdfast.payload_fits(
                            e.filterable, e.body, the_path, the_values)))
                ORDER BY s.score DESC OFFSET the_limit - 1 LIMIT 1
            )) AS score
        )
        SELECT array_agg(s.session_key), array_agg(s.epoch), array_agg(s.seq), array_agg(s.score)
        INTO keys, epochs, seqs, scores
        FROM last CROSS JOIN sums s
        WHERE (reading = every OR rest < last.score)
            AND (last.score IS NULL OR s.score + rest >= last.score)
            AND (unfiltered OR EXISTS (
                SELECT FROM (
                    SELECT * FROM holdfast.events
                    WHERE tenant = the_tenant AND session_key = s.session_key
                        AND epoch = s.epoch AND seq BETWEEN s.seq AND s.seq
                    ORDER BY seq LIMIT 1
                ) e
                WHERE (the_types IS NULL OR e.type = ANY (the_types))
                    AND (the_since IS NULL OR e.occurred_at >= the_since)
                    AND (the_until IS NULL OR e.occurred_at < the_until)
                    AND (the_owner IS NULL OR e.owner = the_owner)
                    AND (the_path IS NULL OR holdfast.payload_fits(
                        e.filterable, e.body, the_path, the_values))));
        IF reading = every THEN
            RETURN QUERY SELECT * FROM unnest(keys, epochs, seqs, scores);
            RETURN;
        END IF;
        -- To look a posting up costs about as much as to read four.
        EXIT WHEN 4 * cardinality(keys) <= holding[reading + 1];
        twice := 2 * reads;
        WHILE reading < every AND reads < twice LOOP
            reading := reading + 1;
            reads := reads + holding[reading];
        END LOOP;
    END LOOP;

    -- Each lexeme that is looked up leaves fewer events to look the next one up for.
    WHILE reading < every AND cardinality(keys) > the_limit LOOP
        reading := reading + 1;
        rest := rests[reading];
        WITH q AS MATERIALIZED (
            SELECT lexemes[reading] COLLATE "C" AS lexeme, weights[reading] AS weight
        ), sums AS MATERIALIZED (
            SELECT s.session_key, s.epoch, s.seq,
                   s.score + COALESCE(q.weight * (p.times * (k1 + 1)
                     / (p.times + k1 * (1 - b + b * (p.length / average)))), 0) AS score
            FROM q CROSS JOIN unnest(keys, epochs, seqs, scores) AS s (session_key, epoch, seq, score)
            LEFT JOIN LATERAL (
                SELECT * FROM holdfast.event_postings
                WHERE tenant = the_tenant AND agent = the_agent AND lexeme = q.lexeme
                    AND session_key = s.session_key AND epoch = s.epoch AND seq = s.seq OFFSET 0
            ) p ON true
        ), last AS MATERIALIZED (
            SELECT almost * score AS score FROM sums ORDER BY score DESC OFFSET the_limit - 1 LIMIT 1
        )
        SELECT array_agg(s.session_key), array_agg(s.epoch), array_agg(s.seq), array_agg(s.score)
        INTO keys, epochs, seqs, scores
        FROM last JOIN sums s ON s.score + rest >= last.score;
    END LOOP;
    RETURN QUERY
    SELECT s.session_key, s.epoch, s.seq, (
        SELECT sum(q.weight * (p.times * (k1 + 1)
                     / (p.times + k1 * (1 - b + b * (p.length / average)))) ORDER BY q.at)
        FROM unnest(lexemes, weights, places) AS q (lexeme, weight, at)
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.event_postings
            WHERE tenant = the_tenant AND agent = the_agent AND lexeme = q.lexeme
                AND session_key = s.session_key AND epoch = s.epoch AND seq = s.seq OFFSET 0
        ) p)
    FROM unnest(keys, epochs, seqs) AS s (session_key, epoch, seq);
END
$$;
