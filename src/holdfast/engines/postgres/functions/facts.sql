-- version: 3
-- Facts.

-- The key of a scope for a writer, which holds it until its transaction ends; made on first use.
CREATE OR REPLACE FUNCTION holdfast.hold_fact_scope(
    the_tenant text, the_namespace text, the_agent text, the_language text
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    found bigint;
BEGIN
    LOOP
        SELECT s.key INTO found FROM holdfast.fact_scopes s
        WHERE s.tenant = the_tenant AND s.namespace = the_namespace AND s.agent = the_agent
            AND the_language = ANY (s.languages)
        FOR KEY SHARE;
        IF found IS NULL THEN
            UPDATE holdfast.fact_scopes s SET languages = s.languages || the_language
            WHERE s.tenant = the_tenant AND s.namespace = the_namespace AND s.agent = the_agent
                AND NOT the_language = ANY (s.languages)
            RETURNING s.key INTO found;
        END IF;
        IF found IS NULL THEN
            INSERT INTO holdfast.fact_scopes (tenant, namespace, agent, languages)
            VALUES (the_tenant, the_namespace, the_agent, ARRAY[the_language])
            ON CONFLICT DO NOTHING RETURNING key INTO found;
        END IF;
        IF found IS NOT NULL THEN
            RETURN found;
        END IF;
        -- Cleared, or made by somebody else, in the meantime: look again.
    END LOOP;
END
$$;

-- Take facts, which the caller has locked, out of all that they are recalled by.
CREATE OR REPLACE FUNCTION holdfast.retire_facts(the_tenant text, the_scope bigint, the_numbers bigint[])
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    WITH gone AS (
        DELETE FROM holdfast.fact_texts t
        WHERE t.tenant = the_tenant AND t.scope = the_scope AND t.number = ANY (the_numbers)
        RETURNING t.language, t.number, t.lexemes
    )
    DELETE FROM holdfast.fact_postings p USING gone g, unnest(g.lexemes) AS word (lexeme)
    WHERE p.tenant = the_tenant AND p.scope = the_scope AND p.language = g.language
        AND p.lexeme = word.lexeme AND p.number = g.number;
    DELETE FROM holdfast.fact_vectors v
    WHERE v.tenant = the_tenant AND v.scope = the_scope AND v.number = ANY (the_numbers);
    DELETE FROM holdfast.fact_links l USING holdfast.facts f, unnest(f.entities) AS about (entity)
    WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.number = ANY (the_numbers)
        AND f.superseded_by IS NULL
        AND l.tenant = the_tenant AND l.scope = the_scope AND l.entity = about.entity
        AND l.number = f.number;
END
$$;

-- The id that an earlier save with a key was given, or NULL; another fingerprint is a conflict.
CREATE OR REPLACE FUNCTION holdfast.replayed_fact(
    the_tenant text, the_scope bigint, the_key text, the_fingerprint text, moment timestamptz
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    earlier holdfast.facts;
BEGIN
    SELECT * INTO earlier FROM holdfast.facts f
    WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.key = the_key
        AND (f.expires_at IS NULL OR f.expires_at > moment);
    IF FOUND AND earlier.fingerprint <> the_fingerprint THEN
        PERFORM holdfast.fail('HF001', 'used_before',
                              jsonb_build_object('kind', 'memory', 'key', earlier.id));
    END IF;
    RETURN earlier.id;
END
$$;

-- The id that an earlier save with a key was given, or NULL: then the key is the caller's until its
-- transaction ends.
CREATE OR REPLACE FUNCTION holdfast.claim_fact_key(
    the_tenant text, the_scope bigint, the_key text, the_fingerprint text
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    earlier text;
BEGIN
    IF the_key IS NULL THEN
        RETURN NULL;
    END IF;
    -- One save with a key at a time; the next one finds the first one's fact.
    PERFORM pg_advisory_xact_lock(hashtextextended(the_key, the_scope));
    earlier := holdfast.replayed_fact(
        the_tenant, the_scope, the_key, the_fingerprint, holdfast.now());
    IF earlier IS NULL THEN
        PERFORM holdfast.delete_facts(the_tenant, the_scope, ARRAY(
            SELECT f.id FROM holdfast.facts f
            WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.key = the_key));
    END IF;
    RETURN earlier;
END
$$;

-- Take a live fact out of all that it is recalled by, for another one; the fact as it was.
CREATE OR REPLACE FUNCTION holdfast.supersede_fact(
    the_tenant text, the_scope bigint, the_supersedes text, the_id text, moment timestamptz
) RETURNS holdfast.facts
LANGUAGE plpgsql
AS $$
DECLARE
    old holdfast.facts;
BEGIN
    SELECT * INTO old FROM holdfast.facts f
    WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.id = the_supersedes
        AND (f.expires_at IS NULL OR f.expires_at > moment)
    FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF002', 'not there',
                              jsonb_build_object('kind', 'memory', 'key', the_supersedes));
    ELSIF old.superseded_by IS NOT NULL THEN
        PERFORM holdfast.fail('HF001', old.superseded_by,
                              jsonb_build_object('kind', 'superseded', 'key', old.id));
    END IF;
    PERFORM holdfast.retire_facts(the_tenant, the_scope, ARRAY[old.number]);
    UPDATE holdfast.facts f SET superseded_by = the_id
    WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.id = old.id;
    RETURN old;
END
$$;

-- Insert a fact with its words and links. The one of earlier versions had no subject.
DROP FUNCTION IF EXISTS holdfast.insert_fact(
    text, bigint, text, text, text, text, double precision, text, text[], text, text, timestamptz,
    timestamptz, text, int, text[], int[]);
CREATE OR REPLACE FUNCTION holdfast.insert_fact(
    the_tenant text, the_scope bigint, the_id text, the_content text, the_metadata text,
    the_topic text, the_confidence double precision, the_source text, the_entities text[],
    the_key text, the_fingerprint text, moment timestamptz, the_expiry timestamptz,
    the_language text, the_length int, the_lexemes text[], the_times int[], the_subject text
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    the_number bigint;
BEGIN
    INSERT INTO holdfast.facts
        (tenant, scope, id, content, metadata, topic, confidence, source, entities, key,
         fingerprint, created_at, expires_at, subject)
    VALUES (the_tenant, the_scope, the_id, the_content, the_metadata, the_topic, the_confidence,
            the_source, the_entities, the_key, the_fingerprint, moment, the_expiry, the_subject)
    RETURNING number INTO the_number;
    INSERT INTO holdfast.fact_texts (tenant, scope, number, language, length, expires_at, lexemes)
    VALUES (the_tenant, the_scope, the_number, the_language, the_length, the_expiry, the_lexemes);
    INSERT INTO holdfast.fact_postings
        (tenant, scope, language, lexeme, number, times, length, expires_at)
    SELECT the_tenant, the_scope, the_language, w.lexeme, the_number, w.times, the_length,
           the_expiry
    FROM unnest(the_lexemes, the_times) AS w (lexeme, times);
    IF cardinality(the_entities) > 0 THEN
        INSERT INTO holdfast.fact_links (tenant, scope, entity, number, expires_at)
        SELECT DISTINCT the_tenant, the_scope, e.entity, the_number, the_expiry
        FROM unnest(the_entities) AS e (entity);
    END IF;
END
$$;

-- Keep a fact with its words and links, in the place of another if it supersedes one; its id, or
-- that of the earlier save with the same key.
CREATE OR REPLACE FUNCTION holdfast.save_fact_about(
    the_tenant text, the_namespace text, the_agent text, the_id text, the_content text,
    the_metadata text, the_topic text, the_confidence double precision, the_source text,
    the_entities text[], the_microseconds bigint, the_supersedes text, the_key text,
    the_fingerprint text, the_language text, the_length int, the_lexemes text[], the_times int[],
    the_subject text
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    the_scope bigint := holdfast.hold_fact_scope(
        the_tenant, the_namespace, the_agent, the_language);
    earlier text := holdfast.claim_fact_key(the_tenant, the_scope, the_key, the_fingerprint);
    moment timestamptz;
BEGIN
    IF earlier IS NOT NULL THEN
        RETURN earlier;
    END IF;
    moment := holdfast.now();
    IF the_supersedes IS NOT NULL THEN
        PERFORM holdfast.supersede_fact(the_tenant, the_scope, the_supersedes, the_id, moment);
    END IF;
    PERFORM holdfast.insert_fact(
        the_tenant, the_scope, the_id, the_content, the_metadata, the_topic, the_confidence,
        the_source, the_entities, the_key, the_fingerprint, moment,
        moment + the_microseconds * interval '1 microsecond', the_language, the_length,
        the_lexemes, the_times, the_subject);
    RETURN the_id;
END
$$;

-- Keep a fact in the place of another, with that one's subject, and its fields where NULL is given,
-- the time of expiry too; its id, or that of the earlier update with the same key.
CREATE OR REPLACE FUNCTION holdfast.update_fact(
    the_tenant text, the_namespace text, the_agent text, the_id text, the_content text,
    the_metadata text, the_topic text, the_confidence double precision, the_source text,
    the_entities text[], the_microseconds bigint, the_supersedes text, the_key text,
    the_fingerprint text, the_language text, the_length int, the_lexemes text[], the_times int[]
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    the_scope bigint := holdfast.hold_fact_scope(
        the_tenant, the_namespace, the_agent, the_language);
    earlier text := holdfast.claim_fact_key(the_tenant, the_scope, the_key, the_fingerprint);
    moment timestamptz;
    old holdfast.facts;
BEGIN
    IF earlier IS NOT NULL THEN
        RETURN earlier;
    END IF;
    moment := holdfast.now();
    old := holdfast.supersede_fact(the_tenant, the_scope, the_supersedes, the_id, moment);
    PERFORM holdfast.insert_fact(
        the_tenant, the_scope, the_id, the_content, COALESCE(the_metadata, old.metadata),
        COALESCE(the_topic, old.topic), COALESCE(the_confidence, old.confidence),
        COALESCE(the_source, old.source), COALESCE(the_entities, old.entities), the_key,
        the_fingerprint, moment,
        COALESCE(moment + the_microseconds * interval '1 microsecond', old.expires_at),
        the_language, the_length, the_lexemes, the_times, old.subject);
    RETURN the_id;
END
$$;

-- Remove facts by their ids, those that have expired too; how many there were.
CREATE OR REPLACE FUNCTION holdfast.delete_facts(the_tenant text, the_scope bigint, the_ids text[])
RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    doomed bigint[] := ARRAY(
        SELECT f.number FROM holdfast.facts f
        WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.id = ANY (the_ids)
        ORDER BY f.number FOR UPDATE);
BEGIN
    IF cardinality(doomed) > 0 THEN
        PERFORM holdfast.retire_facts(the_tenant, the_scope, doomed);
        DELETE FROM holdfast.facts f
        WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.id = ANY (the_ids)
            AND f.number = ANY (doomed);
    END IF;
    RETURN cardinality(doomed);
END
$$;

-- Remove one fact; whether it was there and had not expired.
CREATE OR REPLACE FUNCTION holdfast.delete_fact(
    the_tenant text, the_namespace text, the_agent text, the_id text
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    the_scope bigint;
    live boolean;
BEGIN
    SELECT s.key INTO the_scope FROM holdfast.fact_scopes s
    WHERE s.tenant = the_tenant AND s.namespace = the_namespace AND s.agent = the_agent
    FOR KEY SHARE;
    SELECT f.expires_at IS NULL OR f.expires_at > holdfast.now() INTO live FROM holdfast.facts f
    WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.id = the_id;
    RETURN COALESCE(live, false)
        AND holdfast.delete_facts(the_tenant, the_scope, ARRAY[the_id]) > 0;
END
$$;

-- Remove a scope with all that is in it.
CREATE OR REPLACE FUNCTION holdfast.clear_facts(the_tenant text, the_namespace text, the_agent text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    the_scope bigint;
BEGIN
    -- Nobody saves or deletes from here on; who indexes or purges has its facts locked.
    SELECT s.key INTO the_scope FROM holdfast.fact_scopes s
    WHERE s.tenant = the_tenant AND s.namespace = the_namespace AND s.agent = the_agent
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM FROM holdfast.facts f WHERE f.tenant = the_tenant AND f.scope = the_scope
    ORDER BY f.number FOR UPDATE;
    DELETE FROM holdfast.facts f WHERE f.tenant = the_tenant AND f.scope = the_scope;
    DELETE FROM holdfast.fact_texts t WHERE t.tenant = the_tenant AND t.scope = the_scope;
    DELETE FROM holdfast.fact_postings p WHERE p.tenant = the_tenant AND p.scope = the_scope;
    DELETE FROM holdfast.fact_vectors v WHERE v.tenant = the_tenant AND v.scope = the_scope;
    DELETE FROM holdfast.fact_links l WHERE l.tenant = the_tenant AND l.scope = the_scope;
    DELETE FROM holdfast.fact_scopes s
    WHERE s.tenant = the_tenant AND s.namespace = the_namespace AND s.agent = the_agent;
END
$$;

-- The BM25 of every live fact of a scope that holds one of the lexemes.
CREATE OR REPLACE FUNCTION holdfast.fact_words(
    the_tenant text, the_scope bigint, the_language text, the_lexemes text[], moment timestamptz,
    k1 double precision, b double precision
) RETURNS TABLE (number bigint, score double precision)
LANGUAGE plpgsql STABLE ROWS 100
AS $$
#variable_conflict use_column
DECLARE
    texts double precision;
    average double precision;
BEGIN
    SELECT count(*), sum(t.length)::double precision / NULLIF(count(*), 0) INTO texts, average
    FROM holdfast.fact_texts t
    WHERE t.tenant = the_tenant AND t.scope = the_scope AND t.language = the_language
        AND (t.expires_at IS NULL OR t.expires_at > moment);
    RETURN QUERY
    SELECT held.number,
           -- In the order of the question, so that equal texts have equal sums.
           sum(ln(1 + (texts - held.holding + 0.5) / (held.holding + 0.5))
               * (held.times * (k1 + 1)
                  / (held.times + k1 * (1 - b + b * (held.length / average))))
               ORDER BY held.at)
    FROM (
        SELECT q.at, p.number, p.times::double precision AS times,
               p.length::double precision AS length,
               (count(*) OVER (PARTITION BY q.at))::double precision AS holding
        FROM unnest(the_lexemes) WITH ORDINALITY AS q (lexeme, at)
        JOIN holdfast.fact_postings p
            ON p.tenant = the_tenant AND p.scope = the_scope AND p.language = the_language
                AND p.lexeme = q.lexeme
        WHERE p.expires_at IS NULL OR p.expires_at > moment
    ) held
    GROUP BY held.number;
END
$$;

-- Remove facts that have expired, of all tenants; how many there were.
CREATE OR REPLACE FUNCTION holdfast.purge_facts(at_most int) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    one record;
    gone bigint := 0;
BEGIN
    FOR one IN
        WITH due AS (
            SELECT f.tenant, f.scope, f.id FROM holdfast.facts f
            WHERE f.expires_at <= (SELECT holdfast.now())
            ORDER BY f.expires_at LIMIT at_most FOR UPDATE SKIP LOCKED
        )
        SELECT tenant, scope, array_agg(id) AS ids FROM due GROUP BY tenant, scope
    LOOP
        gone := gone + holdfast.delete_facts(one.tenant, one.scope, one.ids);
    END LOOP;
    RETURN gone;
END
$$;
