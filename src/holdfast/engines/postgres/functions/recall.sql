-- version: 9
-- Recall: the candidates of a question, by words and by meaning.

-- The first events of agents by words and those by meaning, each at least the_limit, with both scores and
-- all that ranks them; equal scores go by session, epoch and seq. One agent, or all whose names begin
-- with the_beginning and not with the_other. the_vector is NULL for a search by words alone. matched has
-- the ordinals of the lexemes that an event is indexed by. A body above body_bytes is NULL.
--
-- If events wait for the index, index_limit is above 0 and the role may write, indexing is true and
-- nothing is searched.
CREATE OR REPLACE FUNCTION holdfast.search_events(
    the_tenant text, the_agent text, the_beginning text, the_other text, most_agents int,
    the_lexemes text[], the_names text[], the_vector real[], the_model text, the_limit bigint,
    the_session text, the_types text[], the_since timestamptz, the_until timestamptz,
    the_owner text, the_path jsonpath, the_values jsonb, k1 double precision, b double precision,
    body_bytes int, index_limit bigint,
    OUT searched text[], OUT queued text[], OUT waiting bigint, OUT indexing boolean,
    OUT may_index boolean, OUT model text, OUT unembedded boolean, OUT speakers text[],
    OUT word_seconds double precision, OUT near_seconds double precision,
    OUT lexicals double precision[], OUT semantics double precision[], OUT matched text[],
    OUT asks boolean[], OUT borrows boolean[], OUT spoke text[], OUT agents text[],
    OUT sessions text[], OUT types text[], OUT bodies text[], OUT ids text[], OUT runs text[],
    OUT times timestamptz[], OUT epochs int[], OUT seqs bigint[]
)
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
    -- A word of more events is common.
    few CONSTANT bigint := 1000;
    asked CONSTANT public.vector := the_vector;
    began timestamptz;
    the_key bigint;
    one holdfast.event_agents;
    average double precision;
    in_session int[];
    lexemes text[];
    places int[];
    holding bigint[];
    weights double precision[];
    gains double precision[];
    levels int[];
    words int[];
    near int[];
    chosen int[];
    named_keys int[];
    named_numbers int[];
    named_names text[];
    -- All candidates, of all agents.
    all_keys int[] := '{}';
    all_numbers int[] := '{}';
    all_scores double precision[] := '{}';
    all_matched text[] := '{}';
    all_word boolean[] := '{}';
    all_near boolean[] := '{}';
BEGIN
    IF the_agent IS NOT NULL THEN
        searched := ARRAY[the_agent];
    ELSE
        searched := ARRAY(SELECT holdfast.agents_with_events(
            the_tenant, the_beginning, the_other, most_agents + 1));
    END IF;
    SELECT array_agg(u.agent), COALESCE(sum(u.events), 0) INTO queued, waiting
    FROM (
        SELECT a.agent, sum(u.last_seq - u.first_seq + 1) AS events
        FROM unnest(searched) AS a (agent)
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.unindexed_events
            WHERE tenant = the_tenant AND agent = a.agent OFFSET 0
        ) u
        GROUP BY a.agent
    ) u;
    may_index := has_table_privilege('holdfast.event_blocks', 'INSERT');
    indexing := waiting > 0 AND index_limit > 0 AND may_index;
    SELECT m.model INTO model FROM holdfast.event_models m WHERE m.tenant = the_tenant;
    unembedded := the_vector IS NOT NULL AND EXISTS (
        SELECT FROM unnest(searched) AS a (agent) CROSS JOIN LATERAL (
            SELECT FROM holdfast.unembedded_events u
            WHERE u.tenant = the_tenant AND u.agent = a.agent LIMIT 1) u);
    IF indexing OR cardinality(searched) > most_agents THEN
        RETURN;
    END IF;
    IF the_session IS NOT NULL THEN
        SELECT s.key INTO the_key FROM holdfast.sessions s
        WHERE s.tenant = the_tenant AND s.id = the_session;
        IF the_key IS NULL THEN
            RETURN;
        END IF;
    END IF;

    word_seconds := 0;
    near_seconds := 0;
    FOR one IN
        SELECT e.* FROM unnest(searched) AS a (agent)
        JOIN holdfast.event_agents e ON e.tenant = the_tenant AND e.agent = a.agent
        WHERE e.documents > 0
    LOOP
        began := clock_timestamp();
        -- Texts without words have no average length.
        average := one.length::double precision / one.documents;
        SELECT array_agg(l.lexeme), array_agg(l.at), array_agg(l.holding), array_agg(l.weight),
               array_agg(l.weight * l.saturation), array_agg(l.levels)
        INTO lexemes, places, holding, weights, gains, levels
        FROM (
            SELECT l.*, ln(1 + (one.documents::double precision - l.holding + 0.5)
                           / (l.holding + 0.5)) AS weight
            FROM (
                -- A lexeme that is in no group is not looked for in groups again.
                SELECT q.lexeme, q.at::int AS at,
                       CASE WHEN bool_or(l.grouped) THEN one.levels ELSE 0 END AS levels, sum(l.holding) AS holding,
                       -- The largest that 16 bits hold stands for any number.
                       max(CASE WHEN l.most = 32767 THEN k1 + 1
                           ELSE l.most * (k1 + 1) / (l.most + k1 * (1 - b + b * (
                               GREATEST(l.shortest, l.most)::double precision / average))) END)
                           AS saturation
                FROM unnest(the_lexemes) WITH ORDINALITY AS q (lexeme, at)
                CROSS JOIN LATERAL (
                    SELECT * FROM holdfast.word_rows(one.key, one.levels, q.lexeme) OFFSET 0
                ) l
                GROUP BY q.lexeme, q.at
            ) l
            ORDER BY l.holding, l.at
        ) l;
        words := CASE WHEN lexemes IS NULL THEN '{}' END;
        IF cardinality(lexemes) = 1 AND holding[1] > few AND num_nonnulls(
            the_types, the_since, the_until, the_path) = 0
        THEN
            words := holdfast.common_word_candidates(
                one, average, lexemes[1], holding[1], weights[1],
                the_limit, the_key, the_owner, k1, b);
        END IF;
        IF words IS NULL THEN
            in_session := CASE WHEN the_key IS NOT NULL THEN ARRAY(
                SELECT x.number FROM holdfast.event_numbers x
                WHERE x.session_key = the_key AND x.agent_key = one.key ORDER BY x.number) END;
            words := CASE WHEN in_session = '{}' THEN '{}' ELSE holdfast.word_candidates(
                the_tenant, one.key, levels, average, lexemes, holding, weights, gains, the_limit,
                in_session, the_types, the_since, the_until, the_owner, the_path, the_values, k1,
                b) END;
        END IF;
        word_seconds := word_seconds + extract(epoch FROM clock_timestamp() - began);
        began := clock_timestamp();
        near := CASE WHEN the_vector IS NULL OR model IS DISTINCT FROM the_model THEN '{}'
            ELSE holdfast.near_candidates(
                one, the_vector, the_model, the_limit, the_key, the_types, the_since, the_until,
                the_owner, the_path, the_values) END;
        near_seconds := near_seconds + extract(epoch FROM clock_timestamp() - began);
        began := clock_timestamp();
        SELECT array_agg(c.n ORDER BY c.n), all_word || array_agg(c.is_word ORDER BY c.n),
               all_near || array_agg(NOT c.is_word OR c.is_both ORDER BY c.n)
        INTO chosen, all_word, all_near
        FROM (
            SELECT n, bool_or(is_word) AS is_word, count(*) > 1 AS is_both
            FROM (
                SELECT unnest(words) AS n, true AS is_word
                UNION ALL SELECT unnest(near), false
            ) c
            GROUP BY n
        ) c;
        CONTINUE WHEN chosen IS NULL;
        all_numbers := all_numbers || chosen;
        all_keys := all_keys || array_fill(one.key, ARRAY[cardinality(chosen)]);
        SELECT all_scores || array_agg(g.score ORDER BY g.at),
               all_matched || array_agg(g.matched ORDER BY g.at)
        INTO all_scores, all_matched
        FROM (
            -- In the order of the question, so that equal texts have equal sums.
            SELECT g.at, COALESCE(sum(g.gain ORDER BY g.place), 0) AS score,
                   COALESCE(string_agg(g.place::text, ',' ORDER BY g.place), '') AS matched
            FROM (
                SELECT at, NULL::int AS place, NULL::double precision AS gain
                FROM generate_subscripts(chosen, 1) AS at
                UNION ALL
                SELECT f.at, q.place, q.weight * (f.times * (k1 + 1)
                         / (f.times + k1 * (1 - b + b * (f.length / average))))
                FROM unnest(lexemes, weights, places, levels) AS q (lexeme, weight, place, levels)
                CROSS JOIN LATERAL holdfast.postings_of(one.key, q.levels, q.lexeme, chosen) f
            ) g
            GROUP BY g.at
        ) g;
        word_seconds := word_seconds + extract(epoch FROM clock_timestamp() - began);
    END LOOP;
    IF all_numbers = '{}' THEN
        RETURN;
    END IF;

    SELECT array_agg(s.agent_key), array_agg(s.number), array_agg(s.name)
    INTO named_keys, named_numbers, named_names
    FROM unnest(searched) AS a (agent)
    JOIN holdfast.event_agents e ON e.tenant = the_tenant AND e.agent = a.agent
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_speakers
        WHERE agent_key = e.key AND name = ANY (the_names) OFFSET 0
    ) s;
    speakers := ARRAY(SELECT DISTINCT unnest(named_names));

    SELECT array_agg(r.score), array_agg(r.cosine), array_agg(r.matched), array_agg(r.asks),
           array_agg(r.borrows), array_agg(COALESCE(n.name, '')), array_agg(e.agent),
           array_agg(r.session), array_agg(e.type),
           array_agg(CASE WHEN octet_length(e.body) <= body_bytes THEN e.body END),
           array_agg(e.id), array_agg(e.run), array_agg(e.occurred_at), array_agg(r.epoch),
           array_agg(r.seq)
    INTO lexicals, semantics, matched, asks, borrows, spoke, agents, sessions, types, bodies, ids,
         runs, times, epochs, seqs
    FROM (
        SELECT c.*,
               row_number() OVER (
                   PARTITION BY c.is_word ORDER BY c.run, c.session, c.epoch, c.seq) AS word_rank,
               row_number() OVER (
                   PARTITION BY c.is_near ORDER BY c.cosine DESC, c.session, c.epoch, c.seq)
                   AS near_rank
        FROM (
            -- Scores that differ by less than this are equal (TIE in recall_rules.py).
            SELECT c.*, count(*) FILTER (WHERE c.before - c.score >= 1e-9) OVER (
                PARTITION BY c.is_word ORDER BY c.score DESC) AS run
            FROM (
                SELECT c.*, x.*, s.id AS session, v.cosine,
                       lag(c.score) OVER (PARTITION BY c.is_word ORDER BY c.score DESC) AS before
                FROM unnest(all_keys, all_numbers, all_scores, all_matched, all_word, all_near)
                    AS c (of_agent, n, score, matched, is_word, is_near)
                CROSS JOIN LATERAL (
                    SELECT * FROM holdfast.event_numbers
                    WHERE agent_key = c.of_agent AND number = c.n OFFSET 0
                ) x
                CROSS JOIN LATERAL (
                    SELECT id FROM holdfast.sessions
                    WHERE tenant = the_tenant AND key BETWEEN x.session_key AND x.session_key
                    ORDER BY key LIMIT 1
                ) s
                LEFT JOIN LATERAL (
                    SELECT round((1 - (embedding OPERATOR(public.<=>) asked))
                        * 1000000) / 1000000 AS cosine
                    FROM holdfast.event_vectors
                    WHERE tenant = the_tenant AND session_key = x.session_key AND epoch = x.epoch
                        AND seq = x.seq AND the_vector IS NOT NULL AND model IN ('', the_model)
                        AND public.vector_dims(embedding) = cardinality(the_vector)
                        AND search_events.model = the_model
                    OFFSET 0
                ) v ON true
            ) c
        ) c
    ) r
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.events
        WHERE tenant = the_tenant AND session_key = r.session_key AND epoch = r.epoch
            AND seq BETWEEN r.seq AND r.seq
        ORDER BY seq LIMIT 1
    ) e
    LEFT JOIN LATERAL (
        SELECT u.name FROM unnest(named_keys, named_numbers, named_names) AS u (key, number, name)
        WHERE u.key = r.of_agent AND u.number = r.speaker
    ) n ON true
    WHERE (r.is_word AND r.word_rank <= the_limit) OR (r.is_near AND r.near_rank <= the_limit);
END
$$;

-- The numbers of the events of an agent whose vectors are nearest and that the filters allow, and of all
-- that 32 bits cannot tell from the last of them, ascending. All are compared, or those that the agent's
-- index gives; if these are not enough, all are compared after all.
CREATE OR REPLACE FUNCTION holdfast.near_candidates(
    one holdfast.event_agents, the_vector real[], the_model text, the_limit bigint, the_key bigint,
    the_types text[], the_since timestamptz, the_until timestamptz, the_owner text,
    the_path jsonpath, the_values jsonb
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
    dimension CONSTANT int := cardinality(the_vector);
    asked CONSTANT public.vector := the_vector;
    unfiltered CONSTANT boolean :=
        num_nonnulls(the_types, the_since, the_until, the_owner, the_path) = 0;
    found int[];
BEGIN
    IF the_key IS NULL AND one.near_dimension = dimension THEN
        -- For this transaction, which is one statement: the scan goes on until enough rows pass.
        PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true),
                -- Of 200,000 vectors, 270 miss a twentieth of the nearest five.
                set_config('hnsw.ef_search', least(greatest(the_limit + 32, 270), 1000)::text, true);
        EXECUTE format(
            'SELECT array_agg(x.number ORDER BY x.number) FROM ('
            '    SELECT v.session_key, v.epoch, v.seq FROM holdfast.event_vectors v'
            '    WHERE v.tenant = %1$L AND v.agent = %2$L'
            '        AND public.vector_dims(v.embedding) = %3$s AND v.model IN ('''', $3)'
            '        AND ($4 OR holdfast.event_passes('
            '            %1$L, v.session_key, v.epoch, v.seq, $5, $6, $7, $8, $9, $10))'
            '    ORDER BY public.l2_normalize(v.embedding)::public.halfvec(%3$s)'
            '        OPERATOR(public.<=>) public.l2_normalize($1)::public.halfvec(%3$s)'
            '    LIMIT $11) v '
            'JOIN holdfast.event_numbers x ON x.session_key = v.session_key'
            '    AND x.epoch = v.epoch AND x.seq = v.seq AND x.agent_key = $2',
            one.tenant, one.agent, dimension)
        INTO found
        USING asked, one.key, the_model, unfiltered, the_types, the_since, the_until, the_owner,
            the_path, the_values, the_limit + 32;
        IF cardinality(found) >= the_limit THEN
            RETURN found;
        END IF;
    END IF;

    WITH held AS NOT MATERIALIZED (
        SELECT v.* FROM holdfast.event_vectors v
        WHERE the_key IS NULL AND v.tenant = one.tenant AND v.agent = one.agent
        UNION ALL
        SELECT v.* FROM holdfast.event_vectors v
        WHERE v.tenant = one.tenant AND v.session_key = the_key AND (v.agent || '') = one.agent
    ), mine AS MATERIALIZED (
        SELECT h.session_key, h.epoch, h.seq, h.embedding OPERATOR(public.<=>) asked AS distance
        FROM held h
        WHERE h.model IN ('', the_model) AND public.vector_dims(h.embedding) = dimension
            AND (unfiltered OR holdfast.event_passes(
                one.tenant, h.session_key, h.epoch, h.seq, the_types, the_since, the_until,
                the_owner, the_path, the_values))
    )
    SELECT array_agg(x.number ORDER BY x.number) INTO found
    FROM mine m
    CROSS JOIN LATERAL (
        SELECT number FROM holdfast.event_numbers
        WHERE session_key = m.session_key AND epoch = m.epoch AND seq = m.seq
            AND agent_key = one.key OFFSET 0
    ) x
    -- A little further than the last: what rounds to the same score is decided by its position.
    WHERE m.distance <= COALESCE((
        SELECT k.distance FROM mine k ORDER BY k.distance OFFSET the_limit - 1 LIMIT 1), 2) + 0.000002;
    RETURN COALESCE(found, '{}');
END
$$;

-- The events of an agent that its index of vectors gives for a vector, with their distances; none without an
-- agent.
CREATE OR REPLACE FUNCTION holdfast.near_events(
    the_tenant text, the_agent text, the_vector real[], the_limit bigint, the_types text[],
    the_since timestamptz, the_until timestamptz, the_owner text, the_path jsonpath,
    the_values jsonb
) RETURNS TABLE (session_key bigint, epoch int, seq bigint, distance double precision)
LANGUAGE plpgsql STABLE ROWS 100
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    asked CONSTANT public.vector := the_vector;
    one holdfast.event_agents;
    found int[];
BEGIN
    IF the_agent IS NULL THEN
        RETURN;
    END IF;
    SELECT a.* INTO one FROM holdfast.event_agents a
    WHERE a.tenant = the_tenant AND a.agent = the_agent;
    -- A short list of an index is less exact.
    found := holdfast.near_candidates(
        one, the_vector, (SELECT m.model FROM holdfast.event_models m WHERE m.tenant = the_tenant),
        GREATEST(the_limit, 48), NULL, the_types, the_since, the_until, the_owner, the_path,
        the_values);
    RETURN QUERY
    SELECT v.session_key, v.epoch, v.seq, v.embedding OPERATOR(public.<=>) asked
    FROM unnest(found) AS n (number)
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_numbers
        WHERE agent_key = one.key AND number = n.number OFFSET 0
    ) x
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.event_vectors
        WHERE tenant = the_tenant AND session_key = x.session_key AND epoch = x.epoch
            AND seq = x.seq OFFSET 0
    ) v;
END
$$;
