-- version: 4
-- Events that wait for an embedding.

-- Whoever takes ranges from the queue of the index puts them into the queue of the embedder, where a
-- tenant has one. The lock orders it against a model that is being adopted: either that sees the
-- events, or this sees the model.
CREATE OR REPLACE FUNCTION holdfast.queue_for_embedding() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    -- In arrays: no statement of Citus can read the rows of a trigger.
    rows_taken record;
BEGIN
    FOR rows_taken IN
        SELECT t.tenant, array_agg(t.agent) AS agents, array_agg(t.session_key) AS keys,
               array_agg(t.epoch) AS epochs, array_agg(t.first_seq) AS starts,
               array_agg(t.last_seq) AS ends
        FROM taken t GROUP BY t.tenant ORDER BY t.tenant
    LOOP
        PERFORM pg_advisory_xact_lock_shared(7018, hashtext(rows_taken.tenant));
        IF EXISTS (SELECT FROM holdfast.event_models m WHERE m.tenant = rows_taken.tenant) THEN
            INSERT INTO holdfast.unembedded_events
                (tenant, agent, session_key, epoch, first_seq, last_seq)
            SELECT rows_taken.tenant, r.agent, r.session_key, r.epoch, r.first_seq, r.last_seq
            FROM unnest(rows_taken.agents, rows_taken.keys, rows_taken.epochs, rows_taken.starts,
                        rows_taken.ends) AS r (agent, session_key, epoch, first_seq, last_seq)
            ON CONFLICT (tenant, agent, session_key, epoch, first_seq)
                DO UPDATE SET last_seq = GREATEST(unembedded_events.last_seq, excluded.last_seq);
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- Make a model the tenant's: what has no vector of it waits for one. Vectors that writers gave bind
-- the dimension. Whether anything changed.
CREATE OR REPLACE FUNCTION holdfast.adopt_model(the_tenant text, the_model text, the_dimension int)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    have int;
BEGIN
    PERFORM pg_advisory_xact_lock(7018, hashtext(the_tenant));
    IF EXISTS (
        SELECT FROM holdfast.event_models m
        WHERE m.tenant = the_tenant AND m.model = the_model AND m.dimension = the_dimension
    ) THEN
        RETURN false;
    END IF;
    SELECT d.dimension INTO have FROM holdfast.event_dimensions d WHERE d.tenant = the_tenant;
    IF have <> the_dimension AND EXISTS (
        SELECT FROM holdfast.event_vectors v WHERE v.tenant = the_tenant AND v.model = ''
    ) THEN
        PERFORM holdfast.fail(
            'HF006', format('has dimension %s, but the log''s is %s', the_dimension, have),
            jsonb_build_object('field', 'embedder'));
    END IF;
    INSERT INTO holdfast.event_dimensions (tenant, dimension) VALUES (the_tenant, the_dimension)
    ON CONFLICT (tenant) DO UPDATE SET dimension = excluded.dimension;
    INSERT INTO holdfast.event_models (tenant, model, dimension, adopted_at)
    VALUES (the_tenant, the_model, the_dimension, holdfast.now())
    ON CONFLICT (tenant) DO UPDATE
    SET model = excluded.model, dimension = excluded.dimension, adopted_at = excluded.adopted_at;
    DELETE FROM holdfast.refused_events r WHERE r.tenant = the_tenant;
    INSERT INTO holdfast.unembedded_events
        (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT e.tenant, e.agent, e.session_key, e.epoch, min(e.seq), max(e.seq)
    FROM holdfast.events e WHERE e.tenant = the_tenant
    GROUP BY e.tenant, e.agent, e.session_key, e.epoch
    ON CONFLICT (tenant, agent, session_key, epoch, first_seq) DO UPDATE
    SET last_seq = GREATEST(unembedded_events.last_seq, excluded.last_seq),
        taken_until = '-infinity';
    RETURN true;
END
$$;

-- The same, and whether its vectors depend on what was said before an event.
CREATE OR REPLACE FUNCTION holdfast.adopt_turn_model(
    the_tenant text, the_model text, the_dimension int, context boolean
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    changed CONSTANT boolean := holdfast.adopt_model(the_tenant, the_model, the_dimension);
BEGIN
    UPDATE holdfast.event_models m SET reads_context = context
    WHERE m.tenant = the_tenant AND m.reads_context <> context;
    RETURN changed;
END
$$;

-- The events of ranges that need a vector of the tenant's model, at most so many of each range; a
-- range with none has one empty row.
CREATE OR REPLACE FUNCTION holdfast.unembedded_in(
    the_tenant text, the_agents text[], the_keys bigint[], the_epochs int[], the_starts bigint[],
    the_ends bigint[], the_limit bigint
) RETURNS TABLE (
    agent text, session_key bigint, epoch int, first_seq bigint, last_seq bigint,
    seq bigint, type text, body text)
LANGUAGE sql STABLE
-- A plan that was made while there were no vectors would read all of them for each event.
SET enable_seqscan = off
SET enable_sort = off
AS $$
    SELECT r.agent, r.session_key, r.epoch, r.first_seq, r.last_seq, w.seq, w.type, w.body
    FROM unnest(the_agents, the_keys, the_epochs, the_starts, the_ends)
        WITH ORDINALITY AS r (agent, session_key, epoch, first_seq, last_seq, at)
    LEFT JOIN LATERAL (
        SELECT e.seq, e.type, e.body
        FROM (
            SELECT session_key, epoch, seq, type, body FROM holdfast.events
            WHERE tenant = the_tenant AND session_key = r.session_key AND epoch = r.epoch
                AND seq BETWEEN r.first_seq AND r.last_seq AND (agent || '') = r.agent
            ORDER BY seq OFFSET 0
        ) e
        -- In the order of seq, which only the primary key has.
        LEFT JOIN LATERAL (
            SELECT model FROM holdfast.event_vectors
            WHERE tenant = the_tenant AND session_key = e.session_key AND epoch = e.epoch
                AND seq BETWEEN e.seq AND e.seq
            ORDER BY seq LIMIT 1
        ) v ON true
        WHERE v.model IS NULL OR v.model NOT IN (
            '', (SELECT m.model FROM holdfast.event_models m WHERE m.tenant = the_tenant))
        ORDER BY e.seq LIMIT the_limit
    ) w ON true
    ORDER BY r.at, w.seq
$$;

-- Take ranges for a while, so that several workers share the queue: as many as hold about so many
-- events. What a dead worker took is free again when its time is over.
CREATE OR REPLACE FUNCTION holdfast.take_unembedded(
    the_tenant text, the_limit bigint, the_seconds float8
) RETURNS TABLE (
    agent text, session_key bigint, epoch int, first_seq bigint, last_seq bigint,
    seq bigint, type text, body text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    ranges holdfast.unembedded_events[];
BEGIN
    WITH free AS MATERIALIZED (
        SELECT * FROM holdfast.unembedded_events q
        WHERE q.tenant = the_tenant AND q.taken_until <= holdfast.now()
        ORDER BY q.agent, q.session_key, q.epoch, q.first_seq
        LIMIT the_limit FOR UPDATE SKIP LOCKED
    ), sized AS (
        SELECT f.*, sum(f.last_seq - f.first_seq + 1)
            OVER (ORDER BY f.agent, f.session_key, f.epoch, f.first_seq) AS until
        FROM free f
    ), taken AS (
        UPDATE holdfast.unembedded_events q
        SET taken_until = holdfast.now() + make_interval(secs => the_seconds)
        FROM sized s
        WHERE q.tenant = the_tenant AND q.agent = s.agent AND q.session_key = s.session_key
            AND q.epoch = s.epoch AND q.first_seq = s.first_seq
            AND s.until - (s.last_seq - s.first_seq + 1) < the_limit
        RETURNING q.*
    )
    SELECT array_agg(ROW(t.*)::holdfast.unembedded_events) INTO ranges FROM taken t;
    RETURN QUERY SELECT * FROM holdfast.unembedded_in(
        the_tenant,
        ARRAY(SELECT r.agent FROM unnest(ranges) r), ARRAY(SELECT r.session_key FROM unnest(ranges) r),
        ARRAY(SELECT r.epoch FROM unnest(ranges) r), ARRAY(SELECT r.first_seq FROM unnest(ranges) r),
        ARRAY(SELECT r.last_seq FROM unnest(ranges) r), the_limit);
END
$$;

-- Keep the vectors of events that are still there, note those that were refused, and shorten the
-- ranges to what lies after ``done``. False, and nothing done, when the tenant has another model now. Where
-- an event has another number in the index than the one given, what was said before it has changed since:
-- it waits for another vector.
CREATE OR REPLACE FUNCTION holdfast.keep_turn_vectors(
    the_tenant text, the_model text, the_dimension int,
    range_agents text[], range_keys bigint[], range_epochs int[], range_starts bigint[],
    range_done bigint[],
    event_keys bigint[], event_epochs int[], event_seqs bigint[], event_numbers int[],
    the_numbers real[], refused_keys bigint[], refused_epochs int[], refused_seqs bigint[]
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    again int[];
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7018, hashtext(the_tenant));
    IF NOT EXISTS (
        SELECT FROM holdfast.event_models m
        WHERE m.tenant = the_tenant AND m.model = the_model AND m.dimension = the_dimension
    ) THEN
        RETURN false;
    END IF;
    -- The rows are locked, so that what is cleared meanwhile leaves no vector behind.
    PERFORM FROM unnest(event_keys, event_epochs, event_seqs) AS i (key, epoch, seq)
    JOIN LATERAL (
        SELECT FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = i.key AND e.epoch = i.epoch
            AND e.seq BETWEEN i.seq AND i.seq
        ORDER BY e.seq LIMIT 1  -- only the primary key has this order
        FOR KEY SHARE
    ) e ON true;
    SELECT COALESCE(array_agg(i.at), '{}') INTO again
    FROM unnest(event_keys, event_epochs, event_seqs, event_numbers)
        WITH ORDINALITY AS i (key, epoch, seq, number, at)
    LEFT JOIN LATERAL (
        SELECT x.number FROM holdfast.event_numbers x
        WHERE x.session_key = i.key AND x.epoch = i.epoch AND x.seq = i.seq
    ) x ON true
    WHERE i.number IS DISTINCT FROM x.number AND EXISTS (
        SELECT FROM holdfast.event_models m WHERE m.tenant = the_tenant AND m.reads_context);
    INSERT INTO holdfast.event_vectors AS v (tenant, session_key, epoch, seq, agent, embedding, model)
    SELECT e.tenant, e.session_key, e.epoch, e.seq, e.agent,
           the_numbers[(i.at - 1) * the_dimension + 1 : i.at * the_dimension]::public.vector,
           the_model
    FROM unnest(event_keys, event_epochs, event_seqs) WITH ORDINALITY AS i (key, epoch, seq, at)
    JOIN LATERAL (
        SELECT * FROM holdfast.events e
        WHERE e.tenant = the_tenant AND e.session_key = i.key AND e.epoch = i.epoch
            AND e.seq BETWEEN i.seq AND i.seq
        ORDER BY e.seq LIMIT 1
    ) e ON true
    WHERE i.at <> ALL (again)
    ON CONFLICT (tenant, session_key, epoch, seq) DO UPDATE
    SET embedding = excluded.embedding, model = excluded.model
    WHERE v.model <> '';
    INSERT INTO holdfast.refused_events (tenant, session_key, epoch, seq)
    SELECT the_tenant, r.key, r.epoch, r.seq
    FROM unnest(refused_keys, refused_epochs, refused_seqs) AS r (key, epoch, seq)
    ON CONFLICT DO NOTHING;
    WITH gone AS (
        DELETE FROM holdfast.unembedded_events q
        USING unnest(range_agents, range_keys, range_epochs, range_starts, range_done)
            AS r (agent, key, epoch, start, done)
        WHERE q.tenant = the_tenant AND q.agent = r.agent AND q.session_key = r.key
            AND q.epoch = r.epoch AND q.first_seq = r.start
        RETURNING q.*, r.done
    )
    INSERT INTO holdfast.unembedded_events
        (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT g.tenant, g.agent, g.session_key, g.epoch, g.done + 1, g.last_seq
    FROM gone g WHERE g.last_seq > g.done
    ON CONFLICT (tenant, agent, session_key, epoch, first_seq) DO UPDATE
    SET last_seq = GREATEST(unembedded_events.last_seq, excluded.last_seq),
        taken_until = '-infinity';
    INSERT INTO holdfast.unembedded_events
        (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT e.tenant, e.agent, e.session_key, e.epoch, e.seq, e.seq
    FROM unnest(again) AS n
    JOIN holdfast.events e ON e.tenant = the_tenant AND e.session_key = event_keys[n]
        AND e.epoch = event_epochs[n] AND e.seq = event_seqs[n]
    ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;

-- Let what was refused wait once more; how many events.
CREATE OR REPLACE FUNCTION holdfast.retry_refused(the_tenant text) RETURNS bigint
LANGUAGE sql
AS $$
    WITH again AS (
        DELETE FROM holdfast.refused_events r WHERE r.tenant = the_tenant RETURNING *
    ), queued AS (
        INSERT INTO holdfast.unembedded_events
            (tenant, agent, session_key, epoch, first_seq, last_seq)
        SELECT e.tenant, e.agent, e.session_key, e.epoch, e.seq, e.seq
        FROM again a JOIN holdfast.events e
            ON e.tenant = the_tenant AND e.session_key = a.session_key AND e.epoch = a.epoch
            AND e.seq = a.seq
        ON CONFLICT DO NOTHING
        RETURNING 1
    )
    SELECT count(*) FROM queued
$$;
