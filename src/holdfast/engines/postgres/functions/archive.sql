-- version: 3
-- Loading an archive.

-- Let a sequence of versions go on after one that was loaded; it never goes back.
CREATE OR REPLACE FUNCTION holdfast.advance_versions(the_sequence text, the_version bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    newest bigint;
BEGIN
    IF the_version IS NULL THEN
        RETURN;
    ELSIF the_sequence NOT IN ('holdfast.state_versions', 'holdfast.item_versions')
        OR the_version > 9007199254740991
    THEN
        PERFORM holdfast.fail('HF006', 'is beyond all versions',
                              jsonb_build_object('field', 'version'));
    END IF;
    -- One at a time, so that nobody sets it back.
    PERFORM pg_advisory_xact_lock(hashtextextended(the_sequence, 0));
    newest := pg_sequence_last_value(the_sequence::regclass);
    IF coalesce(newest, 0) < the_version THEN
        PERFORM setval(the_sequence::regclass, the_version);
    END IF;
END
$$;

REVOKE ALL ON FUNCTION holdfast.advance_versions(text, bigint) FROM PUBLIC;

-- Events at their own positions, in sessions that are there; those that are new are to be indexed.
CREATE OR REPLACE FUNCTION holdfast.load_events(
    the_tenant text, the_sessions text[], the_epochs int[], the_seqs bigint[], the_ids text[],
    the_agents text[], the_types text[], the_times timestamptz[], the_bodies text[],
    the_runs text[], the_filterables text[]
) RETURNS void
LANGUAGE sql
AS $$
    WITH written AS (
        INSERT INTO holdfast.events
            (tenant, session_key, epoch, seq, id, agent, type, run, occurred_at, body, owner,
             subject, filterable)
        SELECT the_tenant, s.key, r.epoch, r.seq, r.id, r.agent, r.type, r.run, r.occurred_at,
               r.body, s.owner, coalesce(s.subject, s.owner), r.filterable::jsonb
        FROM unnest(the_sessions, the_epochs, the_seqs, the_ids, the_agents, the_types, the_times,
                    the_bodies, the_runs, the_filterables)
            AS r (session, epoch, seq, id, agent, type, occurred_at, body, run, filterable)
        JOIN holdfast.sessions s
            ON s.tenant = the_tenant AND s.id = r.session AND s.deleted_at IS NULL
        ON CONFLICT DO NOTHING
        RETURNING agent, session_key, epoch, seq
    )
    INSERT INTO holdfast.unindexed_events AS u
        (tenant, agent, session_key, epoch, first_seq, last_seq)
    SELECT the_tenant, w.agent, w.session_key, w.epoch, min(w.seq), max(w.seq)
    FROM (
        SELECT *, seq - row_number() OVER (
            PARTITION BY agent, session_key, epoch ORDER BY seq) AS stretch
        FROM written
    ) w
    GROUP BY w.agent, w.session_key, w.epoch, w.stretch, w.seq / 500
    ON CONFLICT (tenant, agent, session_key, epoch, first_seq)
    DO UPDATE SET last_seq = greatest(u.last_seq, excluded.last_seq);
$$;

-- A fact with its own id and times; a live one with its words and links.
CREATE OR REPLACE FUNCTION holdfast.load_fact_about(
    the_tenant text, the_namespace text, the_agent text, the_id text, the_content text,
    the_time timestamptz, the_confidence double precision, the_metadata text, the_topic text,
    the_source text, the_entities text[], the_key text, the_fingerprint text,
    the_expiry timestamptz, the_successor text, the_language text, the_length int,
    the_lexemes text[], the_times int[], the_subject text
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    the_scope bigint := holdfast.hold_fact_scope(
        the_tenant, the_namespace, the_agent, the_language);
BEGIN
    IF EXISTS (
        SELECT FROM holdfast.facts f
        WHERE f.tenant = the_tenant AND f.scope = the_scope AND f.id = the_id
    ) THEN
        RETURN;
    ELSIF the_successor IS NULL THEN
        PERFORM holdfast.insert_fact(
            the_tenant, the_scope, the_id, the_content, the_metadata, the_topic, the_confidence,
            the_source, the_entities, the_key, the_fingerprint, the_time, the_expiry, the_language,
            the_length, the_lexemes, the_times, the_subject);
    ELSE
        INSERT INTO holdfast.facts
            (tenant, scope, id, content, metadata, topic, confidence, source, entities, key,
             fingerprint, created_at, expires_at, superseded_by, subject)
        VALUES (the_tenant, the_scope, the_id, the_content, the_metadata, the_topic,
                the_confidence, the_source, the_entities, the_key, the_fingerprint, the_time,
                the_expiry, the_successor, the_subject)
        ON CONFLICT DO NOTHING;
    END IF;
END
$$;

-- Items with their own versions and times; a namespace is the JSON text of its path, and vectors
-- are the text of an array.
CREATE OR REPLACE FUNCTION holdfast.load_items_about(
    the_tenant text, the_owners text[], the_namespaces text[], the_keys text[],
    the_versions bigint[], the_creations timestamptz[], the_updates timestamptz[],
    the_values text[], the_vectors text[], the_ttls double precision[],
    the_expiries timestamptz[], the_filterables text[], the_subjects text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    part record;
BEGIN
    FOR part IN
        SELECT r.*, holdfast.open_item_namespace(
            the_tenant, r.owner, holdfast.item_path(r.namespace), true) AS number
        FROM (SELECT DISTINCT * FROM unnest(the_owners, the_namespaces)) AS r (owner, namespace)
        ORDER BY r.owner COLLATE "C", r.namespace COLLATE "C"
    LOOP
        INSERT INTO holdfast.items (
            tenant, namespace, key, version, created_at, updated_at, ttl_seconds, expires_at,
            vectors, value, filterable, subject)
        SELECT the_tenant, part.number, r.key, r.version, r.created_at, r.updated_at, r.ttl,
               r.expires_at, r.vectors::public.vector[], r.value, r.filterable::jsonb,
               r.subject
        FROM unnest(the_owners, the_namespaces, the_keys, the_versions, the_creations, the_updates,
                    the_values, the_vectors, the_ttls, the_expiries, the_filterables, the_subjects)
            AS r (owner, namespace, key, version, created_at, updated_at, value, vectors, ttl,
                  expires_at, filterable, subject)
        WHERE r.owner = part.owner AND r.namespace = part.namespace
        ON CONFLICT DO NOTHING;
    END LOOP;
    PERFORM holdfast.advance_versions('holdfast.item_versions', max(v.version))
    FROM unnest(the_versions) AS v (version);
END
$$;
