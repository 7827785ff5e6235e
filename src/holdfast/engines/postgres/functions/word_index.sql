-- version: 7
-- The index of words: what changes it. Whoever holds the row of the agent does.

-- The row of an agent, made on first use and locked.
CREATE OR REPLACE FUNCTION holdfast.lock_event_agent(the_tenant text, the_agent text)
RETURNS holdfast.event_agents
LANGUAGE plpgsql
AS $$
DECLARE
    found holdfast.event_agents;
BEGIN
    LOOP
        SELECT * INTO found FROM holdfast.event_agents a
        WHERE a.tenant = the_tenant AND a.agent = the_agent FOR UPDATE;
        IF found.key IS NOT NULL THEN
            RETURN found;
        END IF;
        -- Not before it is looked for: every attempt takes a key.
        INSERT INTO holdfast.event_agents (tenant, agent) VALUES (the_tenant, the_agent)
        ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

-- Events of agents that wait for the index, in ranges of the queue until they have about so many events,
-- and the messages before each range. version is that of the agent's index; numbered: it is indexed, and
-- only what follows it depends on it; ahead: it is before the range; embedded: it has a vector. A range
-- without an event has one row without a seq.
CREATE OR REPLACE FUNCTION holdfast.waiting_events(
    the_tenant text, the_agents text[], the_limit bigint, look_back bigint
) RETURNS TABLE (
    agent text, version bigint, session_key bigint, epoch int, first_seq bigint, last_seq bigint,
    ahead boolean, numbered boolean, at_epoch int, seq bigint, type text, occurred_at timestamptz,
    body text, embedded boolean)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    IF the_agents IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH ranges AS MATERIALIZED (
        SELECT u.* FROM (
            SELECT q.*, sum(q.last_seq - q.first_seq + 1) OVER (
                ORDER BY q.agent, q.session_key, q.epoch, q.first_seq
                ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW
            ) AS before
            FROM unnest(the_agents) AS a (of_agent)
            CROSS JOIN LATERAL (
                SELECT * FROM holdfast.unindexed_events
                WHERE tenant = the_tenant AND agent = a.of_agent
                ORDER BY session_key, epoch, first_seq LIMIT the_limit
            ) q
        ) u
        WHERE COALESCE(u.before, 0) < the_limit
    )
    SELECT r.agent, COALESCE(a.version, 0), r.session_key, r.epoch, r.first_seq, r.last_seq,
           e.ahead, e.numbered, e.epoch, e.seq, e.type, e.occurred_at, e.body, e.embedded
    FROM ranges r
    LEFT JOIN holdfast.event_agents a ON a.tenant = the_tenant AND a.agent = r.agent
    LEFT JOIN LATERAL (
        SELECT true AS ahead, true AS numbered, b.*, true AS embedded
        FROM (
            SELECT e.epoch, e.seq, e.type, e.occurred_at, e.body
            FROM (
                -- Numbers ascend, so no more can be in reach (REACH in recall_rules.py).
                SELECT e.* FROM holdfast.events e
                WHERE e.tenant = the_tenant AND e.session_key = r.session_key
                    AND (e.epoch, e.seq) < (r.epoch, r.first_seq)
                ORDER BY e.epoch DESC, e.seq DESC LIMIT 256
            ) e
            LEFT JOIN LATERAL (
                SELECT said FROM holdfast.event_numbers
                WHERE session_key = e.session_key AND epoch = e.epoch AND seq = e.seq OFFSET 0
            ) x ON true
            WHERE e.seq >= r.first_seq - 256 AND e.agent = r.agent AND e.type = 'message'
                AND COALESCE(x.said, true)
            ORDER BY e.epoch DESC, e.seq DESC LIMIT look_back
        ) b
        UNION ALL
        SELECT false, x.number IS NOT NULL, e.epoch, e.seq, e.type, e.occurred_at, e.body, EXISTS (
                   SELECT FROM holdfast.event_vectors v
                   WHERE v.tenant = the_tenant AND v.session_key = e.session_key
                       AND v.epoch = e.epoch AND v.seq = e.seq)
        FROM (
            -- In the order of seq, which only the primary key has.
            SELECT * FROM holdfast.events
            WHERE tenant = the_tenant AND session_key = r.session_key AND epoch = r.epoch
                AND seq BETWEEN r.first_seq AND r.last_seq
            ORDER BY seq OFFSET 0
        ) e
        -- OFFSET 0: without statistics a planner would read all numbers of the session for each event.
        LEFT JOIN LATERAL (
            SELECT number FROM holdfast.event_numbers
            WHERE session_key = e.session_key AND epoch = e.epoch AND seq = e.seq OFFSET 0
        ) x ON true
        WHERE e.agent = r.agent
    ) e ON true
    ORDER BY r.agent, r.session_key, r.epoch, r.first_seq, e.epoch, e.seq;
END
$$;

DROP FUNCTION IF EXISTS holdfast.index_with_vectors(
    text, text, bigint, bigint[], int[], bigint[], bigint[], int[], bigint[], int[], text[],
    boolean[], boolean[], boolean[], text[], int[], int[], int[], int[], int[], bigint[], bigint[],
    text, int, int[], real[]);
DROP FUNCTION IF EXISTS holdfast.index_words(
    text, text, bigint, bigint[], int[], bigint[], bigint[], int[], bigint[], int[], text[],
    boolean[], boolean[], boolean[], text[], int[], int[], int[], int[], int[], bigint[]);

-- Take ranges of an agent's queue, number their events, and add their blocks. Of each block its lexeme,
-- the ordinals of its first and last event, bounds, where its postings begin in the_postings, its words if
-- it has several, and whether it is packed. the_levels: of their labels. Returns how many batches are not merged; 0, and nothing is done, when the agent's index has another version than
-- when the events were read.
CREATE OR REPLACE FUNCTION holdfast.index_words(
    the_tenant text, the_agent text, the_version bigint,
    range_keys bigint[], range_epochs int[], range_starts bigint[],
    event_keys bigint[], event_epochs int[], event_seqs bigint[], event_lengths int[],
    event_speakers text[], event_said boolean[], event_asks boolean[], event_borrows boolean[],
    block_lexemes text[], block_firsts int[], block_lasts int[], block_mosts int[],
    block_shortests int[], block_starts int[], block_words text[], block_packed boolean[],
    the_postings bigint[], the_levels int
) RETURNS int
LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    agent holdfast.event_agents := holdfast.lock_event_agent(the_tenant, the_agent);
    spoken int;
BEGIN
    IF agent.version <> the_version THEN
        RETURN 0;
    END IF;
    DELETE FROM holdfast.unindexed_events u
    USING unnest(range_keys, range_epochs, range_starts) AS r (session_key, epoch, first_seq)
    WHERE u.tenant = the_tenant AND u.agent = the_agent AND u.session_key = r.session_key
        AND u.epoch = r.epoch AND u.first_seq = r.first_seq;

    -- One that is known keeps its number, and the number that it would have had is not used.
    INSERT INTO holdfast.event_speakers AS s (agent_key, name, number, messages)
    SELECT agent.key, n.speaker, agent.speakers + row_number() OVER (ORDER BY n.speaker), n.messages
    FROM (SELECT speaker, count(*) AS messages FROM unnest(event_speakers) AS speaker
          WHERE speaker <> '' GROUP BY speaker) n
    ON CONFLICT (agent_key, name) DO UPDATE SET messages = s.messages + excluded.messages;
    GET DIAGNOSTICS spoken = ROW_COUNT;

    INSERT INTO holdfast.event_numbers
        (agent_key, number, session_key, epoch, seq, length, speaker, said, asks, borrows)
    SELECT agent.key, agent.newest + i.at, i.key, i.epoch, i.seq, i.length, COALESCE((
               SELECT s.number FROM holdfast.event_speakers s
               WHERE s.agent_key = agent.key AND s.name = i.speaker), 0),
           i.said, i.asks, i.borrows
    FROM unnest(event_keys, event_epochs, event_seqs, event_lengths, event_speakers, event_said,
                event_asks, event_borrows)
        WITH ORDINALITY AS i (key, epoch, seq, length, speaker, said, asks, borrows, at);
    INSERT INTO holdfast.event_blocks
        (agent_key, lexeme, first, last, most, shortest, words, postings, packed)
    SELECT agent.key, i.lexeme, agent.newest + i.first, agent.newest + i.last, i.most, i.shortest,
           i.words, CASE WHEN NOT i.packed THEN p.p END, CASE WHEN i.packed THEN p.p::int[] END
    FROM unnest(block_lexemes, block_firsts, block_lasts, block_mosts, block_shortests, block_starts,
                block_words, block_packed)
        WITH ORDINALITY AS i (lexeme, first, last, most, shortest, start, words, packed, at)
    CROSS JOIN LATERAL (
        SELECT the_postings[i.start : COALESCE(
            block_starts[i.at + 1] - 1, cardinality(the_postings))] AS p OFFSET 0
    ) p;

    UPDATE holdfast.event_agents a
    SET documents = a.documents + n.documents, length = a.length + n.length,
        newest = a.newest + n.documents, version = a.version + 1, small = a.small + 1,
        speakers = a.speakers + spoken, levels = a.levels | the_levels
    FROM (SELECT count(*) AS documents, COALESCE(sum(i), 0) AS length
          FROM unnest(event_lengths) AS i) n
    WHERE a.tenant = the_tenant AND a.agent = the_agent;
    RETURN agent.small + 1;
END
$$;

-- The same, and vectors of a model for those of the events at the_ordinals: then they do not wait for one.
CREATE OR REPLACE FUNCTION holdfast.index_with_vectors(
    the_tenant text, the_agent text, the_version bigint,
    range_keys bigint[], range_epochs int[], range_starts bigint[],
    event_keys bigint[], event_epochs int[], event_seqs bigint[], event_lengths int[],
    event_speakers text[], event_said boolean[], event_asks boolean[], event_borrows boolean[],
    block_lexemes text[], block_firsts int[], block_lasts int[], block_mosts int[],
    block_shortests int[], block_starts int[], block_words text[], block_packed boolean[],
    the_postings bigint[], the_levels int, range_ends bigint[], the_model text, the_dimension int, the_ordinals int[], the_vectors real[]
) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    small CONSTANT int := holdfast.index_words(
        the_tenant, the_agent, the_version, range_keys, range_epochs, range_starts, event_keys,
        event_epochs, event_seqs, event_lengths, event_speakers, event_said, event_asks,
        event_borrows, block_lexemes, block_firsts, block_lasts, block_mosts, block_shortests,
        block_starts, block_words, block_packed, the_postings, the_levels);
BEGIN
    IF small > 0 THEN
        PERFORM holdfast.keep_turn_vectors(
            the_tenant, the_model, the_dimension,
            array_fill(the_agent, ARRAY[cardinality(range_keys)]), range_keys, range_epochs,
            range_starts, range_ends,
            ARRAY(SELECT event_keys[o.n] FROM unnest(the_ordinals) WITH ORDINALITY AS o (n, at)
                  ORDER BY o.at),
            ARRAY(SELECT event_epochs[o.n] FROM unnest(the_ordinals) WITH ORDINALITY AS o (n, at)
                  ORDER BY o.at),
            ARRAY(SELECT event_seqs[o.n] FROM unnest(the_ordinals) WITH ORDINALITY AS o (n, at)
                  ORDER BY o.at),
            ARRAY(SELECT x.number FROM unnest(the_ordinals) WITH ORDINALITY AS o (n, at)
                  JOIN holdfast.event_numbers x ON x.session_key = event_keys[o.n]
                      AND x.epoch = event_epochs[o.n] AND x.seq = event_seqs[o.n]
                  ORDER BY o.at),
            the_vectors, '{}', '{}', '{}');
    END IF;
    RETURN small;
END
$$;

-- Take events of a session out of the index of an agent, whose row is locked: those at the_epochs and
-- the_seqs, which are gone, and those that may borrow from them. These are up to three messages after each
-- one (LOOK_BACK in recall_rules.py); they wait for the index again, and for a vector if the model reads
-- what was said before.
CREATE OR REPLACE FUNCTION holdfast.unindex_events(
    agent holdfast.event_agents, the_session bigint, the_epochs int[], the_seqs bigint[]
) RETURNS void
LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    after_epochs int[];
    after_seqs bigint[];
    -- Ascending, so that a number is found by halves.
    gone int[];
    lengths bigint;
BEGIN
    UPDATE holdfast.event_agents a SET version = a.version + 1
    WHERE a.tenant = agent.tenant AND a.agent = agent.agent;

    WITH positions AS (
        SELECT p.epoch, p.seq, bool_or(p.removed) AS removed
        FROM (
            SELECT r.epoch, r.seq, true AS removed FROM unnest(the_epochs, the_seqs) AS r (epoch, seq)
            UNION ALL
            SELECT x.epoch, x.seq, false FROM holdfast.event_numbers x
            WHERE x.session_key = the_session AND x.agent_key = agent.key AND x.said
                AND (x.epoch, x.seq) > (
                    SELECT r.epoch, r.seq FROM unnest(the_epochs, the_seqs) AS r (epoch, seq)
                    ORDER BY r.epoch, r.seq LIMIT 1)
        ) p
        GROUP BY p.epoch, p.seq
    ), runs AS (
        SELECT p.*, count(*) FILTER (WHERE p.removed) OVER (ORDER BY p.epoch, p.seq) AS run
        FROM positions p
    ), following AS (
        SELECT r.*, row_number() OVER (PARTITION BY r.run ORDER BY r.epoch, r.seq) AS at
        FROM runs r WHERE NOT r.removed
    )
    SELECT array_agg(f.epoch), array_agg(f.seq) INTO after_epochs, after_seqs
    FROM following f WHERE f.at <= 3;

    WITH unnumbered AS (
        DELETE FROM holdfast.event_numbers x
        USING unnest(the_epochs || after_epochs, the_seqs || after_seqs) AS r (epoch, seq)
        WHERE x.session_key = the_session AND x.epoch = r.epoch AND x.seq = r.seq
            AND x.agent_key = agent.key
        RETURNING x.number, x.length, x.speaker
    ), spoke AS (
        SELECT u.speaker, count(*) AS messages FROM unnumbered u WHERE u.speaker > 0
        GROUP BY u.speaker
    ), quieter AS (
        UPDATE holdfast.event_speakers s SET messages = s.messages - n.messages
        FROM spoke n
        WHERE s.agent_key = agent.key AND s.number = n.speaker AND s.messages > n.messages
    ), silent AS (
        DELETE FROM holdfast.event_speakers s USING spoke n
        WHERE s.agent_key = agent.key AND s.number = n.speaker AND s.messages <= n.messages
    )
    SELECT array_agg(u.number ORDER BY u.number), COALESCE(sum(u.length), 0) INTO gone, lengths
    FROM unnumbered u;
    IF gone IS NULL THEN
        RETURN;
    END IF;

    WITH touched AS MATERIALIZED (
        SELECT b.ctid AS at FROM holdfast.event_blocks b
        WHERE b.agent_key = agent.key
            AND b.first <= gone[cardinality(gone)] AND b.last >= gone[1]
            -- Of a row of one lexeme two look-ups by halves, and only then each posting.
            AND (b.words IS NOT NULL
                OR width_bucket(((gone[cardinality(gone)] - b.first + 1)::bigint << 42) - 1, b.postings)
                    > width_bucket(((gone[1] - b.first)::bigint << 42) - 1, b.postings)
                OR width_bucket((LEAST(gone[cardinality(gone)] - b.first + 1, 65536)::bigint << 15) - 1,
                                b.packed::bigint[])
                    > width_bucket((GREATEST(gone[1] - b.first, 0)::bigint << 15) - 1,
                                   b.packed::bigint[]))
            AND EXISTS (
                SELECT FROM holdfast.row_postings(
                    b.first, b.postings, CASE WHEN b.words IS NULL THEN b.packed
                        ELSE b.packed[b.packed[1] + 1 :] END) p
                WHERE gone[width_bucket(p.number, gone)] = p.number)
    ), held AS MATERIALIZED (
        SELECT t.at, w.*, COALESCE(w.postings, w.packed::bigint[]) = '{}' AS empty
        FROM touched t
        JOIN holdfast.event_blocks b ON b.ctid = t.at
        CROSS JOIN LATERAL holdfast.row_without(
            b.first, b.postings, b.packed, b.words, gone) w
    ), emptied AS (
        DELETE FROM holdfast.event_blocks b USING held h WHERE b.ctid = h.at AND h.empty
    )
    UPDATE holdfast.event_blocks b SET postings = h.postings, packed = h.packed, words = h.words
    FROM held h WHERE b.ctid = h.at AND NOT h.empty;

    UPDATE holdfast.event_agents a
    SET documents = a.documents - cardinality(gone), length = a.length - lengths
    WHERE a.tenant = agent.tenant AND a.agent = agent.agent;
    INSERT INTO holdfast.unindexed_events AS u
        (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT agent.tenant, agent.agent, the_session, r.epoch, r.seq, r.seq
    FROM unnest(after_epochs, after_seqs) AS r (epoch, seq)
    ON CONFLICT DO NOTHING;
    DELETE FROM holdfast.event_vectors v
    USING unnest(after_epochs, after_seqs) AS r (epoch, seq)
    WHERE v.tenant = agent.tenant AND v.session_key = the_session AND v.epoch = r.epoch
        AND v.seq = r.seq AND v.model <> '' AND EXISTS (
            SELECT FROM holdfast.event_models m WHERE m.tenant = agent.tenant AND m.reads_context);
END
$$;
