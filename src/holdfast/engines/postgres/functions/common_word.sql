-- version: 2
-- The search for a word that very many events of an agent have.

-- The numbers of the best of an agent's events that have one lexeme, and of all that could rank before them;
-- in a session, or in the sessions of an owner, unless these are NULL. NULL if only reading all postings would tell.
--
-- Blocks are read from the highest bound down. When as many events as are asked for score no less than the
-- bound of the next block, what is not read can only score the same: and equal scores go by session,
-- epoch and seq. So the log is read from its beginning until enough events have that score, which are few
-- if most events have it.
CREATE OR REPLACE FUNCTION holdfast.common_word_candidates(
    one holdfast.event_agents, average double precision, the_lexeme text, holding bigint, weight double precision,
    the_limit bigint, the_session bigint, the_owner text, k1 double precision, b double precision
) RETURNS int[]
LANGUAGE plpgsql STABLE
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
    most_blocks CONSTANT int := 8;
    most_sessions CONSTANT int := 1000;
    most_walked CONSTANT bigint := 4096;
    almost CONSTANT double precision := 1e-8;
    block record;
    numbers int[] := '{}';
    scores double precision[] := '{}';
    more_numbers int[];
    more_scores double precision[];
    found bigint;
    last double precision;
    chosen int[];
    needed bigint;
    close bigint;
    step bigint;
    walked bigint := 0;
    session bigint;
    at_epoch int;
    at_seq bigint;
BEGIN
    FOR block IN
        SELECT l.*, lead(l.bound) OVER (ORDER BY l.bound DESC, l.first) AS next_bound
        FROM (
            -- The largest that 16 bits hold stands for any number.
            SELECT l.*, weight * CASE WHEN l.most = 32767 THEN k1 + 1
                       ELSE l.most::double precision * (k1 + 1) / (l.most::double precision + k1 * (
                           1 - b + b * (GREATEST(l.shortest, l.most)::double precision / average)))
                       END AS bound
            FROM holdfast.word_rows(one.key, one.levels, the_lexeme) l
            ORDER BY bound DESC, l.first LIMIT most_blocks + 1
        ) l
        ORDER BY l.bound DESC, l.first
    LOOP
        IF block.next_bound IS NULL THEN
            RETURN NULL;
        END IF;
        SELECT array_agg(p.number), array_agg(weight * (p.times * (k1 + 1)
                   / (p.times + k1 * (1 - b + b * (p.length / average)))))
        INTO more_numbers, more_scores
        FROM (
            SELECT block.first + (p >> block.number_bits)::int AS number,
                   ((p >> block.times_bits) & block.times_mask)::double precision AS times,
                   (p & block.length_mask)::double precision AS length
            FROM unnest(block.postings) AS p OFFSET 0
        ) p
        WHERE num_nonnulls(the_session, the_owner) = 0 OR EXISTS (
            SELECT FROM holdfast.event_numbers x
            WHERE x.agent_key = one.key AND x.number = p.number
                AND COALESCE(x.session_key = the_session, (
                    SELECT s.owner = the_owner FROM holdfast.sessions s
                    WHERE s.tenant = one.tenant AND s.key = x.session_key)));
        numbers := numbers || more_numbers;
        scores := scores || more_scores;
        SELECT count(*) INTO found FROM unnest(scores) AS s WHERE s >= block.next_bound;
        EXIT WHEN found >= the_limit;
    END LOOP;

    SELECT s INTO last FROM unnest(scores) AS s ORDER BY s DESC OFFSET the_limit - 1 LIMIT 1;
    SELECT array_agg(u.number) FILTER (WHERE u.score > last),
           count(*) FILTER (WHERE u.score = last),
           count(*) FILTER (WHERE u.score <> last AND abs(u.score - last) <= almost)
    INTO chosen, found, close
    FROM unnest(numbers, scores) AS u (number, score);
    chosen := COALESCE(chosen, '{}');
    needed := the_limit - cardinality(chosen);
    -- So many events are probably read before enough are found.
    IF close > 0 OR needed * (cardinality(scores)::double precision / found)
            * (one.documents::double precision / holding) > most_walked / 2 THEN
        RETURN NULL;
    END IF;
    step := LEAST(2 * needed + 64, most_walked);
    FOR session IN
        -- The filter is outside of the limit, which bounds what is read.
        SELECT s.key FROM (
            SELECT s.key, s.owner FROM holdfast.sessions s
            WHERE s.tenant = one.tenant AND the_session IS NULL
            ORDER BY s.id LIMIT most_sessions
        ) s
        WHERE the_owner IS NULL OR s.owner = the_owner
        UNION ALL SELECT the_session WHERE the_session IS NOT NULL
    LOOP
        at_epoch := -1;
        at_seq := 0;
        LOOP
            SELECT array_agg(x.number ORDER BY x.epoch, x.seq), count(*),
                   (array_agg(x.epoch ORDER BY x.epoch DESC, x.seq DESC))[1],
                   (array_agg(x.seq ORDER BY x.epoch DESC, x.seq DESC))[1]
            INTO numbers, found, at_epoch, at_seq
            FROM (
                SELECT x.number, x.epoch, x.seq FROM holdfast.event_numbers x
                WHERE x.session_key = session AND (x.epoch, x.seq) > (at_epoch, at_seq)
                    AND x.agent_key = one.key
                ORDER BY x.epoch, x.seq LIMIT step
            ) x;
            EXIT WHEN found = 0;
            SELECT array_agg(f.number ORDER BY f.place) FILTER (WHERE f.score = last),
                   count(*) FILTER (WHERE f.score <> last AND abs(f.score - last) <= almost)
            INTO more_numbers, close
            FROM (
                SELECT o.number, o.place, weight * (f.times * (k1 + 1)
                           / (f.times + k1 * (1 - b + b * (f.length / average)))) AS score
                FROM (
                    SELECT array_agg(n ORDER BY n) AS numbers, array_agg(place ORDER BY n) AS places
                    FROM unnest(numbers) WITH ORDINALITY AS o (n, place)
                ) asked
                CROSS JOIN LATERAL (
                    SELECT * FROM holdfast.postings_of(
                        one.key, one.levels, the_lexeme, asked.numbers) OFFSET 0
                ) f
                CROSS JOIN LATERAL (
                    SELECT asked.numbers[f.at] AS number, asked.places[f.at] AS place
                ) o
            ) f;
            IF close > 0 THEN
                RETURN NULL;
            END IF;
            chosen := chosen || more_numbers[:needed];
            needed := needed - COALESCE(cardinality(more_numbers[:needed]), 0);
            EXIT WHEN needed = 0 OR found < step;
            walked := walked + found;
            IF walked >= most_walked THEN
                RETURN NULL;
            END IF;
        END LOOP;
        walked := walked + found;
        EXIT WHEN needed = 0;
        IF walked >= most_walked THEN
            RETURN NULL;
        END IF;
    END LOOP;
    IF needed > 0 AND the_session IS NULL AND EXISTS (
        SELECT FROM holdfast.sessions s
        WHERE s.tenant = one.tenant ORDER BY s.id OFFSET most_sessions LIMIT 1)
    THEN
        RETURN NULL;
    END IF;
    RETURN ARRAY(SELECT n FROM unnest(chosen) AS n ORDER BY n);
END
$$;
