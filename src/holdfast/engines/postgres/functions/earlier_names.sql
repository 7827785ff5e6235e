-- version: 15
-- Functions that processes of an earlier version call while this one is rolled out. They do not say
-- what a filter sees of a body: it is read from the body when one asks.

CREATE OR REPLACE FUNCTION holdfast.append_event(
    the_tenant text, the_session text, the_agent text, the_type text, the_id text, the_run text,
    the_time timestamptz, the_body text
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_event(
        the_tenant, the_session, the_agent, the_type, the_id, the_run, the_time, the_body,
        NULL);
$$;

CREATE OR REPLACE FUNCTION holdfast.append_to_session(
    the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_session_events(
        the_tenant, the_session, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        NULL);
$$;

CREATE OR REPLACE FUNCTION holdfast.append_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        NULL);
$$;

CREATE OR REPLACE FUNCTION holdfast.append_embedded_events(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[],
    the_numbers real[], the_dimension int
) RETURNS TABLE (place int, epoch int, seq bigint)
LANGUAGE sql
AS $$
    SELECT place, epoch, seq FROM holdfast.store_embedded_events(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        NULL, the_numbers, the_dimension);
$$;

CREATE OR REPLACE FUNCTION holdfast.flush_events(
    the_tenant text, the_sessions text[], the_epochs int[], the_seqs bigint[], the_agents text[],
    the_types text[], the_ids text[], the_runs text[], the_times timestamptz[], the_bodies text[]
) RETURNS TABLE (place int, outcome text, ahead int)
LANGUAGE sql
AS $$
    SELECT * FROM holdfast.store_turns(
        the_tenant, the_sessions, the_epochs, the_seqs, the_agents, the_types, the_ids, the_runs,
        the_times, the_bodies, NULL, NULL);
$$;

CREATE OR REPLACE FUNCTION holdfast.flush_turns(
    the_tenant text, the_sessions text[], the_epochs int[], the_seqs bigint[], the_agents text[],
    the_types text[], the_ids text[], the_runs text[], the_times timestamptz[], the_bodies text[],
    the_filterables text[]
) RETURNS TABLE (place int, outcome text, ahead int)
LANGUAGE sql
AS $$
    SELECT * FROM holdfast.store_turns(
        the_tenant, the_sessions, the_epochs, the_seqs, the_agents, the_types, the_ids, the_runs,
        the_times, the_bodies, the_filterables, NULL);
$$;

-- The index of words has another form now. A process that reads or writes the earlier one gets the error of
-- a table that is not there, which it reports as SchemaError.
CREATE OR REPLACE FUNCTION holdfast.index_replaced() RETURNS SETOF text
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the index of words has another form now: upgrade holdfast'
        USING ERRCODE = 'undefined_table';
END
$$;

CREATE OR REPLACE FUNCTION holdfast.index_events(
    the_tenant text, the_agent text,
    range_keys bigint[], range_epochs int[], range_starts bigint[],
    event_ranges int[], event_seqs bigint[], event_lengths int[],
    posting_events int[], posting_lexemes text[], posting_times int[]
) RETURNS void
LANGUAGE plpgsql
AS $$ BEGIN PERFORM holdfast.index_replaced(); END $$;

CREATE OR REPLACE FUNCTION holdfast.search_words(
    the_tenant text, the_agent text, the_lexemes text[], the_limit bigint, the_session text,
    the_types text[], the_since timestamptz, the_until timestamptz,
    k1 double precision, b double precision
) RETURNS TABLE (session_key bigint, epoch int, seq bigint, score double precision)
LANGUAGE plpgsql STABLE ROWS 20
AS $$ BEGIN PERFORM holdfast.index_replaced(); END $$;

CREATE OR REPLACE FUNCTION holdfast.rank_by_words(
    the_tenant text, the_agent text, the_lexemes text[], the_limit bigint, the_session text,
    the_types text[], the_since timestamptz, the_until timestamptz, the_owner text,
    the_path jsonpath, the_values jsonb,
    k1 double precision, b double precision
) RETURNS TABLE (session_key bigint, epoch int, seq bigint, score double precision)
LANGUAGE plpgsql STABLE ROWS 20
AS $$ BEGIN PERFORM holdfast.index_replaced(); END $$;

CREATE OR REPLACE FUNCTION holdfast.keep_embeddings(
    the_tenant text, the_model text, the_dimension int,
    range_agents text[], range_keys bigint[], range_epochs int[], range_starts bigint[],
    range_done bigint[],
    event_keys bigint[], event_epochs int[], event_seqs bigint[], the_numbers real[],
    refused_keys bigint[], refused_epochs int[], refused_seqs bigint[]
) RETURNS boolean
LANGUAGE sql
AS $$
    SELECT holdfast.keep_turn_vectors(
        the_tenant, the_model, the_dimension, range_agents, range_keys, range_epochs, range_starts,
        range_done, event_keys, event_epochs, event_seqs, NULL, the_numbers, refused_keys,
        refused_epochs, refused_seqs);
$$;

-- put_state, which keeps as many versions as before.
CREATE OR REPLACE FUNCTION holdfast.put_state_at_version(
    in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision,
    in_dropped text[], in_replace boolean, in_expected bigint
) RETURNS bigint
LANGUAGE sql
AS $$
    SELECT holdfast.put_state(
        in_tenant, in_session_id, in_state, in_ttl_seconds, in_dropped, in_replace, in_expected, NULL);
$$;

-- put_state_at_version, which does not return the version.
CREATE OR REPLACE FUNCTION holdfast.write_state_at_version(
    in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision,
    in_dropped text[], in_replace boolean, in_expected bigint
) RETURNS void
LANGUAGE sql
AS $$
    SELECT holdfast.put_state_at_version(
        in_tenant, in_session_id, in_state, in_ttl_seconds, in_dropped, in_replace, in_expected);
$$;

-- queue_task, without a priority.
CREATE OR REPLACE FUNCTION holdfast.submit_task(
    in_tenant text, in_id text, in_owner text, in_context_id text, in_new_context_id text,
    in_agent text, in_metadata text, in_max_attempts bigint, in_submit_key text, in_digest text,
    in_retry_of text, in_run_after timestamptz, in_run_after_seconds double precision,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_push_ids text[], in_push_urls text[], in_push_tokens text[], in_push_auths text[]
) RETURNS SETOF holdfast.task_records
LANGUAGE sql
AS $$
    SELECT tenant, id, context_id, agent, state, created_at, updated_at, owner, note, metadata,
           version, fence, attempts, max_attempts, worker, lease_expires_at, run_after,
           cancel_requested, pause_requested, submit_key, retry_of, status_id, status_at,
           status_seq, status_body
    FROM holdfast.queue_task(
        in_tenant, in_id, in_owner, in_context_id, in_new_context_id, in_agent, in_metadata,
        in_max_attempts, in_submit_key, in_digest, in_retry_of, in_run_after,
        in_run_after_seconds, in_message_id, in_message_at, in_message_body, in_message_digest,
        in_push_ids, in_push_urls, in_push_tokens, in_push_auths, 0, '', NULL);
$$;

-- take_tasks, without limits.
CREATE OR REPLACE FUNCTION holdfast.claim_tasks(
    in_tenant text, in_worker text, in_agents text[], in_limit bigint,
    in_lease_seconds double precision, in_serial boolean, in_history bigint
) RETURNS SETOF holdfast.claimed_task
LANGUAGE sql
AS $$
    SELECT * FROM holdfast.take_tasks(
        in_tenant, in_worker, in_agents, in_limit, in_lease_seconds, in_serial, in_history, NULL);
$$;

-- store_task_step, without how long the step took.
CREATE OR REPLACE FUNCTION holdfast.record_task_step(
    in_tenant text, in_id text, in_fence bigint,
    in_kind text, in_name text, in_occurrence bigint,
    in_body text, in_digest text, in_message_id text,
    OUT out_at timestamptz, OUT out_digest text, OUT out_fence bigint, OUT out_chunks bigint,
    OUT out_body text
)
LANGUAGE sql
AS $$
    SELECT s.out_at, s.out_digest, s.out_fence, s.out_chunks, s.out_body
    FROM holdfast.store_task_step(
        in_tenant, in_id, in_fence, in_kind, in_name, in_occurrence, in_body, in_digest,
        in_message_id, NULL) s;
$$;

-- leave_task, without a result and with nothing to wait for.
CREATE OR REPLACE FUNCTION holdfast.transition_task(
    in_tenant text, in_id text, in_fence bigint, in_to text, in_note text,
    in_run_after timestamptz, in_run_after_seconds double precision, in_progress boolean,
    in_message_id text, in_message_at timestamptz, in_message_body text, in_message_digest text,
    in_ask_kind text, in_ask_name text, in_ask_occurrence bigint
) RETURNS SETOF holdfast.task_records
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.leave_task(
        in_tenant, in_id, in_fence, in_to, in_note, in_run_after, in_run_after_seconds,
        in_progress, in_message_id, in_message_at, in_message_body, in_message_digest,
        in_ask_kind, in_ask_name, in_ask_occurrence, NULL, NULL, '{}', NULL);
    RETURN QUERY SELECT * FROM holdfast.task_records r
    WHERE r.tenant = in_tenant AND r.id = in_id;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.reached(
    start bigint, depth bigint, the_types text[], along boolean, against boolean, most bigint
) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
    SELECT holdfast.numbers_reached(e.tenant, start, depth, the_types, along, against, most)
    FROM holdfast.entities e WHERE e.number = start;
$$;

-- store_events_and_kept_states, which keeps as many versions of a state as before.
CREATE OR REPLACE FUNCTION holdfast.store_events_and_states(
    the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[],
    the_runs text[], the_times timestamptz[], the_bodies text[], the_filterables text[],
    the_numbers real[], the_dimension int, patched text[], the_states text[], the_dropped text[],
    the_ttls double precision[], the_versions bigint[]
) RETURNS TABLE (place int, epoch int, seq bigint, first timestamptz)
LANGUAGE sql
AS $$
    SELECT * FROM holdfast.store_events_and_kept_states(
        the_tenant, the_sessions, the_agents, the_types, the_ids, the_runs, the_times, the_bodies,
        the_filterables, the_numbers, the_dimension, patched, the_states, the_dropped, the_ttls,
        the_versions, NULL);
$$;

CREATE OR REPLACE FUNCTION holdfast.create_board(
    in_tenant text, in_id text, in_conversation_id text, in_agent_id text, in_agent_label text,
    in_parent_agent_id text, in_max_retries bigint, in_card_ids text[], in_titles text[]
) RETURNS void
LANGUAGE sql
AS $$
    SELECT holdfast.put_board(
        in_tenant, in_id, in_conversation_id, in_agent_id, in_agent_label, in_parent_agent_id,
        in_max_retries, in_card_ids, in_titles);
$$;

CREATE OR REPLACE FUNCTION holdfast.add_cards(
    in_tenant text, in_board_id text, in_card_ids text[], in_titles text[]
) RETURNS bigint
LANGUAGE sql
AS $$
    SELECT first FROM holdfast.append_cards(in_tenant, in_board_id, in_card_ids, in_titles);
$$;

CREATE OR REPLACE FUNCTION holdfast.save_fact(
    the_tenant text, the_namespace text, the_agent text, the_id text, the_content text,
    the_metadata text, the_topic text, the_confidence double precision, the_source text,
    the_entities text[], the_microseconds bigint, the_supersedes text, the_key text,
    the_fingerprint text, the_language text, the_length int, the_lexemes text[], the_times int[]
) RETURNS text
LANGUAGE sql
AS $$
    SELECT holdfast.save_fact_about(
        the_tenant, the_namespace, the_agent, the_id, the_content, the_metadata, the_topic,
        the_confidence, the_source, the_entities, the_microseconds, the_supersedes, the_key,
        the_fingerprint, the_language, the_length, the_lexemes, the_times, '');
$$;

CREATE OR REPLACE FUNCTION holdfast.load_fact(
    the_tenant text, the_namespace text, the_agent text, the_id text, the_content text,
    the_time timestamptz, the_confidence double precision, the_metadata text, the_topic text,
    the_source text, the_entities text[], the_key text, the_fingerprint text,
    the_expiry timestamptz, the_successor text, the_language text, the_length int,
    the_lexemes text[], the_times int[]
) RETURNS void
LANGUAGE sql
AS $$
    SELECT holdfast.load_fact_about(
        the_tenant, the_namespace, the_agent, the_id, the_content, the_time, the_confidence,
        the_metadata, the_topic, the_source, the_entities, the_key, the_fingerprint, the_expiry,
        the_successor, the_language, the_length, the_lexemes, the_times, '');
$$;

CREATE OR REPLACE FUNCTION holdfast.write_documents(
    the_tenant text, the_collection text, replacing boolean, the_ids text[], the_contents text[],
    the_metadata text[], the_filterables text[], the_dimensions int[], the_numbers real[]
) RETURNS void
LANGUAGE sql
AS $$
    SELECT holdfast.put_documents(
        the_tenant, the_collection, replacing, the_ids, the_contents, the_metadata, the_filterables,
        the_dimensions, the_numbers, array_fill(''::text, ARRAY[cardinality(the_ids)]));
$$;

CREATE OR REPLACE FUNCTION holdfast.task_move_at(task holdfast.tasks, in_seq bigint)
RETURNS holdfast.task_events
LANGUAGE sql STABLE
AS $$
    SELECT holdfast.task_change_at(task.tenant, task.id, task.version, task.state, in_seq)
$$;

CREATE OR REPLACE FUNCTION holdfast.put_items(
    in_tenant text, in_owner text, in_namespaces text[], in_keys text[], in_values text[],
    in_filterables text[], in_vectors text[], in_ttl_seconds double precision[],
    in_expected bigint[]
) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN holdfast.put_items_about(
        in_tenant, in_owner, in_namespaces, in_keys, in_values, in_filterables, in_vectors,
        in_ttl_seconds, in_expected, array_fill(''::text, ARRAY[cardinality(in_keys)]));
END
$$;

CREATE OR REPLACE FUNCTION holdfast.refresh_items(
    in_tenant text, in_owner text, in_namespaces text[], in_keys text[]
) RETURNS TABLE (
    at int, value text, version bigint, created_at timestamptz, updated_at timestamptz,
    expires_at timestamptz
)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY SELECT r.at, r.value, r.version, r.created_at, r.updated_at, r.expires_at
    FROM holdfast.renew_items(in_tenant, in_owner, in_namespaces, in_keys) r;
END
$$;

CREATE OR REPLACE FUNCTION holdfast.load_items(
    the_tenant text, the_owners text[], the_namespaces text[], the_keys text[],
    the_versions bigint[], the_creations timestamptz[], the_updates timestamptz[],
    the_values text[], the_vectors text[], the_ttls double precision[],
    the_expiries timestamptz[], the_filterables text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.load_items_about(
        the_tenant, the_owners, the_namespaces, the_keys, the_versions, the_creations, the_updates,
        the_values, the_vectors, the_ttls, the_expiries, the_filterables,
        array_fill(''::text, ARRAY[cardinality(the_keys)]));
END
$$;

CREATE OR REPLACE FUNCTION holdfast.add_entities(
    the_tenant text, the_ids text[], the_bodies text[], named text[], the_names text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.put_entities(
        the_tenant, the_ids, the_bodies, named, the_names,
        array_fill(''::text, ARRAY[cardinality(the_ids)]));
END
$$;

CREATE OR REPLACE FUNCTION holdfast.add_relationships(
    the_tenant text, the_ids text[], the_sources text[], the_targets text[], the_types text[],
    the_bodies text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM holdfast.put_relationships(
        the_tenant, the_ids, the_sources, the_targets, the_types, the_bodies,
        array_fill(''::text, ARRAY[cardinality(the_ids)]));
END
$$;

CREATE OR REPLACE FUNCTION holdfast.complete_tasks(
    in_tenant text, in_ids text[], in_fences bigint[], in_workers text[]
) RETURNS TABLE (task_id text, reached text)
LANGUAGE sql
AS $$
    SELECT task_id, reached FROM holdfast.complete_tasks_with(
        in_tenant, in_ids, in_fences, in_workers, NULL, NULL, NULL, NULL, NULL);
$$;
