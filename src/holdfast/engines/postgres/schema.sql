-- The schema as it is after all migrations; the functions are in functions/*.sql.
-- `make docs` writes this file, and a test checks it.

CREATE TYPE holdfast.claimed_task AS (
    id text,
    context_id text,
    agent text,
    state text,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    owner text,
    note text,
    metadata text,
    version bigint,
    fence bigint,
    attempts bigint,
    max_attempts bigint,
    worker text,
    lease_expires_at timestamp with time zone,
    run_after timestamp with time zone,
    cancel_requested boolean,
    pause_requested boolean,
    submit_key text,
    retry_of text,
    message_ids text[],
    message_times timestamp with time zone[],
    message_seqs bigint[],
    message_bodies text[],
    parent_id text,
    priority bigint,
    limit_key text
);

CREATE TYPE holdfast.claimed_version AS (
    id text,
    context_id text,
    agent text,
    state text,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    owner text,
    note text,
    metadata text,
    version bigint,
    fence bigint,
    attempts bigint,
    max_attempts bigint,
    worker text,
    lease_expires_at timestamp with time zone,
    run_after timestamp with time zone,
    cancel_requested boolean,
    pause_requested boolean,
    submit_key text,
    retry_of text,
    message_ids text[],
    message_times timestamp with time zone[],
    message_seqs bigint[],
    message_bodies text[],
    parent_id text,
    priority bigint,
    limit_key text,
    handler_version text
);

CREATE TABLE holdfast.api_keys (
    tenant text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    scope text COLLATE "C" NOT NULL DEFAULT 'owner'::text,
    ttl_seconds double precision,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    PRIMARY KEY (tenant, digest),
    UNIQUE (tenant, id),
    CHECK ((scope = ANY (ARRAY['owner'::text, 'operator'::text, 'reader'::text])))
);

CREATE TABLE holdfast.blob_chunks (
    tenant text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, ref, number)
);

CREATE TABLE holdfast.blob_index (
    tenant text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    object_key text COLLATE "C" NOT NULL,
    ref text COLLATE "C",
    size_bytes bigint,
    content_type text,
    sha256 text COLLATE "C",
    created_at timestamp with time zone,
    expires_at timestamp with time zone,
    taken_at timestamp with time zone,
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, place, object_key),
    UNIQUE (tenant, place, ref)
);

CREATE INDEX blob_index_by_expiry ON holdfast.blob_index USING btree (tenant, place, expires_at) WHERE ((expires_at IS NOT NULL) AND (taken_at IS NULL));
CREATE INDEX blob_index_by_subject ON holdfast.blob_index USING btree (tenant, subject) WHERE (subject <> ''::text);
CREATE INDEX blob_index_by_taking ON holdfast.blob_index USING btree (tenant, place, taken_at) WHERE (taken_at IS NOT NULL);
CREATE INDEX blob_index_to_purge ON holdfast.blob_index USING btree (expires_at) WHERE ((place = 'postgres'::text) AND (expires_at IS NOT NULL));

CREATE TABLE holdfast.boards (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    agent_label text NOT NULL,
    parent_agent_id text COLLATE "C",
    max_retries bigint NOT NULL,
    created bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, conversation_id, agent_id)
);

CREATE TABLE holdfast.cards (
    tenant text COLLATE "C" NOT NULL,
    board_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    title text NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'planned'::text,
    retry_count bigint NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '""'::text,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamp with time zone,
    PRIMARY KEY (tenant, board_id, id),
    FOREIGN KEY (tenant, board_id) REFERENCES holdfast.boards(tenant, id) ON DELETE CASCADE
);

CREATE TABLE holdfast.channel_events (
    tenant text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    event text NOT NULL,
    published_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    PRIMARY KEY (tenant, channel, number),
    UNIQUE (tenant, channel, id)
);

CREATE INDEX channel_events_by_expiry ON holdfast.channel_events USING btree (expires_at);

CREATE TABLE holdfast.channels (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    newest bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE holdfast.checkpoint_values (
    tenant text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    kind text,
    data bytea,
    PRIMARY KEY (tenant, thread_key, namespace, channel, version),
    FOREIGN KEY (tenant, thread_key) REFERENCES holdfast.threads(tenant, key) ON DELETE CASCADE
);

CREATE TABLE holdfast.checkpoint_writes (
    tenant text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    index integer NOT NULL,
    path text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, thread_key, namespace, id, task, index),
    FOREIGN KEY (tenant, thread_key) REFERENCES holdfast.threads(tenant, key) ON DELETE CASCADE
);

CREATE TABLE holdfast.checkpoints (
    tenant text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    run text COLLATE "C",
    kind text NOT NULL,
    body bytea NOT NULL,
    metadata_kind text NOT NULL,
    metadata bytea NOT NULL,
    labels jsonb NOT NULL,
    versions jsonb NOT NULL,
    PRIMARY KEY (tenant, thread_key, namespace, id),
    FOREIGN KEY (tenant, thread_key) REFERENCES holdfast.threads(tenant, key) ON DELETE CASCADE
);

CREATE INDEX checkpoints_of_run ON holdfast.checkpoints USING btree (tenant, run) WHERE (run IS NOT NULL);

CREATE TABLE holdfast.collections (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    indexed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE holdfast.data_keys (
    tenant text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    subject text COLLATE "C" NOT NULL,
    kek text COLLATE "C" NOT NULL,
    wrapped bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replaced boolean NOT NULL DEFAULT false,
    first_number bigint,
    PRIMARY KEY (tenant, number)
);

CREATE INDEX data_keys_by_subject ON holdfast.data_keys USING btree (tenant, subject);
CREATE UNIQUE INDEX data_keys_current ON holdfast.data_keys USING btree (tenant, subject) WHERE (NOT replaced);

CREATE TABLE holdfast.dead_letters (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    seq bigint NOT NULL,
    payload bytea NOT NULL,
    reason text NOT NULL,
    failed_at timestamp with time zone NOT NULL DEFAULT holdfast.now(),
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, session, epoch, seq, event)
);

CREATE TABLE holdfast.documents (
    tenant text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    embedding vector NOT NULL,
    content text NOT NULL,
    metadata text NOT NULL,
    filterable jsonb NOT NULL,
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, collection, id)
);

CREATE INDEX documents_by_subject ON holdfast.documents USING btree (tenant, subject) WHERE (subject <> ''::text);
CREATE INDEX documents_filterable ON holdfast.documents USING gin (filterable jsonb_path_ops) WITH (fastupdate=off);

CREATE TABLE holdfast.earlier_states (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    saved boolean NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    written_at timestamp with time zone NOT NULL,
    PRIMARY KEY (tenant, session_id, saved, version)
);

CREATE TABLE holdfast.entities (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    body text NOT NULL,
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX entities_by_subject ON holdfast.entities USING btree (tenant, subject) WHERE (subject <> ''::text);
CREATE INDEX entities_of_tenant ON holdfast.entities USING btree (tenant, number) INCLUDE (id);

CREATE TABLE holdfast.entity_names (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    entity text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name, entity)
);

CREATE INDEX entity_names_of_entity ON holdfast.entity_names USING btree (tenant, entity);

CREATE TABLE holdfast.erasures (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    scope_id text COLLATE "C",
    counts text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    number bigint,
    receipt text,
    sha256 text COLLATE "C",
    data_keys bigint[] NOT NULL DEFAULT '{}'::bigint[],
    PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX erasures_by_number ON holdfast.erasures USING btree (tenant, number) WHERE (number IS NOT NULL);
CREATE UNIQUE INDEX erasures_open ON holdfast.erasures USING btree (tenant, kind, scope_id) WHERE (finished_at IS NULL);

CREATE TABLE holdfast.event_agents (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key integer NOT NULL GENERATED ALWAYS AS IDENTITY,
    documents bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    newest integer NOT NULL DEFAULT 0,
    speakers integer NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    small integer NOT NULL DEFAULT 0,
    near_dimension integer NOT NULL DEFAULT 0,
    levels integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, agent)
) WITH (fillfactor=70);

CREATE TABLE holdfast.event_blocks (
    agent_key integer NOT NULL,
    first integer NOT NULL,
    last integer NOT NULL,
    most smallint NOT NULL,
    shortest smallint NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    postings bigint[],
    packed integer[],
    words text COLLATE "C",
    PRIMARY KEY (agent_key, lexeme, first)
);

CREATE TABLE holdfast.event_dimensions (
    tenant text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    PRIMARY KEY (tenant)
);

CREATE TABLE holdfast.event_models (
    tenant text COLLATE "C" NOT NULL,
    model text NOT NULL,
    dimension integer NOT NULL,
    adopted_at timestamp with time zone NOT NULL,
    reads_context boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant)
);

CREATE TABLE holdfast.event_numbers (
    agent_key integer NOT NULL,
    number integer NOT NULL,
    session_key bigint NOT NULL,
    seq bigint NOT NULL,
    epoch integer NOT NULL,
    length integer NOT NULL,
    speaker integer NOT NULL,
    said boolean NOT NULL,
    asks boolean NOT NULL,
    borrows boolean NOT NULL,
    PRIMARY KEY (agent_key, number)
);

CREATE UNIQUE INDEX event_numbers_of_session ON holdfast.event_numbers USING btree (session_key, epoch, seq);

CREATE TABLE holdfast.event_speakers (
    agent_key integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (agent_key, name)
) WITH (fillfactor=70);

CREATE TABLE holdfast.event_vectors (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch integer NOT NULL,
    seq bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    embedding vector NOT NULL,
    model text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, session_key, epoch, seq)
);

CREATE INDEX event_vectors_given ON holdfast.event_vectors USING btree (tenant) WHERE (model = ''::text);
CREATE INDEX event_vectors_of_agent ON holdfast.event_vectors USING btree (tenant, agent);

CREATE TABLE holdfast.events (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch integer NOT NULL,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    body text NOT NULL,
    owner text COLLATE "C" NOT NULL DEFAULT ''::text,
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    filterable jsonb,
    PRIMARY KEY (tenant, session_key, epoch, seq)
);

CREATE UNIQUE INDEX events_by_id ON holdfast.events USING btree (tenant, session_key, id);
CREATE INDEX events_by_time ON holdfast.events USING btree (tenant, occurred_at);
CREATE INDEX events_of_agent ON holdfast.events USING btree (tenant, agent, occurred_at);
CREATE INDEX events_of_owner ON holdfast.events USING btree (tenant, owner, occurred_at) WHERE (owner <> ''::text);

CREATE TABLE holdfast.fact_links (
    tenant text COLLATE "C" NOT NULL,
    scope bigint NOT NULL,
    entity text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    expires_at timestamp with time zone,
    PRIMARY KEY (tenant, scope, entity, number) INCLUDE (expires_at)
);

CREATE TABLE holdfast.fact_postings (
    tenant text COLLATE "C" NOT NULL,
    scope bigint NOT NULL,
    language text COLLATE "C" NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    times integer NOT NULL,
    length integer NOT NULL,
    expires_at timestamp with time zone,
    PRIMARY KEY (tenant, scope, language, lexeme, number) INCLUDE (times, length, expires_at)
);

CREATE TABLE holdfast.fact_scopes (
    tenant text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    languages text[] COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, namespace, agent)
);

CREATE INDEX fact_scopes_of_agent ON holdfast.fact_scopes USING btree (tenant, agent, namespace);

CREATE TABLE holdfast.fact_texts (
    tenant text COLLATE "C" NOT NULL,
    scope bigint NOT NULL,
    number bigint NOT NULL,
    language text COLLATE "C" NOT NULL,
    length integer NOT NULL,
    expires_at timestamp with time zone,
    lexemes text[] COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, scope, number, language) INCLUDE (length, expires_at)
);

CREATE TABLE holdfast.fact_vectors (
    tenant text COLLATE "C" NOT NULL,
    scope bigint NOT NULL,
    number bigint NOT NULL,
    model text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    expires_at timestamp with time zone,
    embedding vector NOT NULL,
    PRIMARY KEY (tenant, scope, number, model, dimension)
);

CREATE TABLE holdfast.facts (
    tenant text COLLATE "C" NOT NULL,
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    content text NOT NULL,
    metadata text NOT NULL,
    topic text COLLATE "C" NOT NULL,
    confidence double precision NOT NULL,
    source text NOT NULL,
    entities text[] COLLATE "C" NOT NULL,
    key text COLLATE "C",
    fingerprint text,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    superseded_by text COLLATE "C",
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, scope, id)
);

CREATE INDEX facts_by_expiry ON holdfast.facts USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE UNIQUE INDEX facts_by_key ON holdfast.facts USING btree (tenant, scope, key) WHERE (key IS NOT NULL);
CREATE INDEX facts_by_subject ON holdfast.facts USING btree (tenant, subject) WHERE (subject <> ''::text);
CREATE INDEX facts_live ON holdfast.facts USING btree (tenant, scope, number) INCLUDE (expires_at) WHERE (superseded_by IS NULL);

CREATE TABLE holdfast.function_files (
    name text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone NOT NULL DEFAULT now(),
    PRIMARY KEY (name)
);

CREATE TABLE holdfast.imports (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    segments text[] COLLATE "C" NOT NULL DEFAULT '{}'::text[],
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE holdfast.item_namespaces (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    path text[] COLLATE "C" NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    path_key text COLLATE "C" GENERATED ALWAYS AS (holdfast.item_path_key(path)) STORED,
    PRIMARY KEY (tenant, owner, path),
    UNIQUE (tenant, number)
);

CREATE UNIQUE INDEX item_namespaces_by_path_key ON holdfast.item_namespaces USING btree (tenant, owner, path_key);

CREATE TABLE holdfast.items (
    tenant text COLLATE "C" NOT NULL,
    namespace bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    ttl_seconds double precision,
    expires_at timestamp with time zone,
    vectors vector[] NOT NULL,
    value text NOT NULL,
    filterable jsonb NOT NULL,
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, namespace, key),
    FOREIGN KEY (tenant, namespace) REFERENCES holdfast.item_namespaces(tenant, number)
) WITH (fillfactor=85);

CREATE INDEX items_by_subject ON holdfast.items USING btree (tenant, subject) WHERE (subject <> ''::text);
CREATE INDEX items_expiry ON holdfast.items USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE TABLE holdfast.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone NOT NULL DEFAULT now(),
    PRIMARY KEY (version)
);

CREATE TABLE holdfast.notice_key (
    id smallint NOT NULL DEFAULT 1,
    key bytea NOT NULL DEFAULT (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
    PRIMARY KEY (id),
    CHECK ((id = 1))
);

CREATE TABLE holdfast.outbox (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    config_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    due_at timestamp with time zone NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '""'::text,
    dead boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, task_id, config_id, seq)
);

CREATE INDEX outbox_dead ON holdfast.outbox USING btree (due_at) WHERE dead;

CREATE TABLE holdfast.push_configs (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    url text NOT NULL,
    token text NOT NULL,
    authentication text NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    next_seq bigint,
    next_due_at timestamp with time zone,
    next_number bigint,
    owner text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, task_id, id)
);

CREATE INDEX push_configs_due ON holdfast.push_configs USING btree (tenant, next_due_at, next_number) WHERE (next_seq IS NOT NULL);
CREATE INDEX push_configs_due_by_owner ON holdfast.push_configs USING btree (tenant, owner, next_due_at, next_number) WHERE (next_seq IS NOT NULL);

CREATE TRIGGER own_push_config BEFORE INSERT ON holdfast.push_configs FOR EACH ROW EXECUTE FUNCTION holdfast.own_push_config();

CREATE TABLE holdfast.refused_events (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch integer NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (tenant, session_key, epoch, seq)
);

CREATE TABLE holdfast.relationships (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    source bigint NOT NULL,
    target bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    body text NOT NULL,
    subject text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX relationships_by_subject ON holdfast.relationships USING btree (tenant, subject) WHERE (subject <> ''::text);
CREATE INDEX relationships_from ON holdfast.relationships USING btree (tenant, source) INCLUDE (target, type);
CREATE INDEX relationships_to ON holdfast.relationships USING btree (tenant, target) INCLUDE (source, type);

CREATE TABLE holdfast.schedules (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    uid text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text NOT NULL,
    agent text COLLATE "C" NOT NULL,
    message text NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    missed text COLLATE "C" NOT NULL,
    missed_limit bigint NOT NULL,
    grace_seconds double precision NOT NULL,
    max_attempts bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    paused boolean NOT NULL DEFAULT false,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    decided_until timestamp with time zone NOT NULL,
    next_at timestamp with time zone,
    last_run_at timestamp with time zone,
    last_task_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, owner, id)
) WITH (fillfactor=70);

CREATE INDEX schedules_due ON holdfast.schedules USING btree (tenant, next_at) WHERE ((next_at IS NOT NULL) AND (NOT paused));

CREATE TABLE holdfast.session_gaps (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch integer NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    open boolean NOT NULL,
    found_at timestamp with time zone NOT NULL DEFAULT holdfast.now(),
    writers text[] COLLATE "C",
    PRIMARY KEY (tenant, session_key, epoch, from_seq)
);

CREATE INDEX session_gaps_by_writer ON holdfast.session_gaps USING gin (writers) WHERE (writers <> '{}'::text[]);
CREATE INDEX session_gaps_open ON holdfast.session_gaps USING btree (tenant, session_key) WHERE open;

CREATE TABLE holdfast.session_moves (
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    PRIMARY KEY (tenant, session)
);

CREATE TABLE holdfast.session_tombstones (
    tenant text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    exact boolean NOT NULL DEFAULT false,
    agent text COLLATE "C",
    run text COLLATE "C",
    types text[] COLLATE "C",
    epoch integer NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (tenant, session_key, number)
);

CREATE TABLE holdfast.sessions (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    agent text COLLATE "C" NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    metadata text NOT NULL DEFAULT '{}'::text,
    epoch integer NOT NULL DEFAULT 1,
    seq bigint NOT NULL DEFAULT 0,
    hot boolean NOT NULL DEFAULT false,
    overtaken boolean NOT NULL DEFAULT false,
    heat bigint NOT NULL DEFAULT 0,
    reserved bigint NOT NULL DEFAULT 0,
    owner text COLLATE "C" NOT NULL GENERATED ALWAYS AS (holdfast.owner_of(id)) STORED,
    subject text COLLATE "C",
    writers text[] COLLATE "C" NOT NULL DEFAULT '{}'::text[],
    deleted_at timestamp with time zone,
    parent text COLLATE "C",
    parent_at bigint,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor=70);

CREATE INDEX sessions_by_parent ON holdfast.sessions USING btree (tenant, parent) WHERE (parent IS NOT NULL);
CREATE INDEX sessions_by_subject ON holdfast.sessions USING btree (tenant, subject) WHERE (subject IS NOT NULL);
CREATE INDEX sessions_by_writer ON holdfast.sessions USING gin (writers) WHERE (writers <> '{}'::text[]);
CREATE INDEX sessions_deleted ON holdfast.sessions USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE UNIQUE INDEX sessions_keyed ON holdfast.sessions USING btree (key, tenant);
CREATE INDEX sessions_listed ON holdfast.sessions USING btree (tenant, started_at DESC, id DESC) WHERE (started_at > '-infinity'::timestamp with time zone);
CREATE INDEX sessions_listed_by_agent ON holdfast.sessions USING btree (tenant, agent, started_at DESC, id DESC) WHERE (started_at > '-infinity'::timestamp with time zone);
CREATE INDEX sessions_overtaken ON holdfast.sessions USING btree (tenant, id) WHERE overtaken;

CREATE TABLE holdfast.state_asides (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL DEFAULT nextval('holdfast.state_aside_stamps'::regclass),
    fresh boolean NOT NULL,
    cleared boolean NOT NULL,
    gone boolean NOT NULL,
    state jsonb NOT NULL,
    dropped text[] COLLATE "C" NOT NULL,
    ttl_seconds double precision,
    written_at timestamp with time zone NOT NULL DEFAULT holdfast.now(),
    PRIMARY KEY (tenant, session_id)
);

CREATE TABLE holdfast.state_snapshots (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    ttl_seconds double precision,
    expires_at timestamp with time zone,
    cleared boolean NOT NULL DEFAULT false,
    lineage bigint NOT NULL DEFAULT 0,
    base bigint NOT NULL DEFAULT 0,
    stamp bigint NOT NULL DEFAULT 0,
    saved_at timestamp with time zone NOT NULL DEFAULT holdfast.now(),
    writers text[] COLLATE "C" NOT NULL DEFAULT '{}'::text[],
    eviction bigint NOT NULL DEFAULT 0,
    kept_versions smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, session_id)
);

CREATE INDEX state_snapshots_by_writer ON holdfast.state_snapshots USING gin (writers) WHERE (writers <> '{}'::text[]);

CREATE TRIGGER forget_earlier_states AFTER DELETE ON holdfast.state_snapshots FOR EACH ROW EXECUTE FUNCTION holdfast.forget_earlier_states();
CREATE TRIGGER keep_earlier_state AFTER UPDATE ON holdfast.state_snapshots FOR EACH ROW WHEN ((((new.version <> old.version) AND ((new.kept_versions > 0) OR (old.kept_versions > 0) OR (old.expires_at <= new.saved_at))) OR (new.cleared AND (NOT old.cleared)))) EXECUTE FUNCTION holdfast.keep_earlier_state();
CREATE TRIGGER keep_new_state AFTER INSERT ON holdfast.state_snapshots FOR EACH ROW WHEN (((new.kept_versions > 0) AND (NOT new.cleared))) EXECUTE FUNCTION holdfast.keep_earlier_state();

CREATE TABLE holdfast.states (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    state jsonb NOT NULL,
    version bigint NOT NULL DEFAULT ((EXTRACT(epoch FROM clock_timestamp()) * (1000000)::numeric))::bigint,
    ttl_seconds double precision,
    written_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    kept_versions smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, session_id)
);

CREATE INDEX states_by_expiry ON holdfast.states USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE TRIGGER forget_earlier_states AFTER DELETE ON holdfast.states FOR EACH ROW EXECUTE FUNCTION holdfast.forget_earlier_states();
CREATE TRIGGER keep_earlier_state AFTER UPDATE ON holdfast.states FOR EACH ROW WHEN (((new.kept_versions > 0) OR (old.kept_versions > 0) OR (old.expires_at <= new.written_at))) EXECUTE FUNCTION holdfast.keep_earlier_state();
CREATE TRIGGER keep_new_state AFTER INSERT ON holdfast.states FOR EACH ROW WHEN ((new.kept_versions > 0)) EXECUTE FUNCTION holdfast.keep_earlier_state();

CREATE TABLE holdfast.task_artifacts (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    begun bigint NOT NULL,
    anew bigint NOT NULL,
    fence bigint NOT NULL,
    complete boolean NOT NULL,
    PRIMARY KEY (tenant, task_id, id)
) WITH (fillfactor=70);

CREATE TABLE holdfast.task_cleanup (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    due_at timestamp with time zone,
    PRIMARY KEY (tenant, task_id, kind, ref)
);

CREATE INDEX task_cleanup_due ON holdfast.task_cleanup USING btree (tenant, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX task_cleanup_of_ref ON holdfast.task_cleanup USING btree (tenant, ref);

CREATE TABLE holdfast.task_contexts (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    created_at timestamp with time zone NOT NULL,
    PRIMARY KEY (tenant, owner, id)
);

CREATE INDEX task_contexts_listed ON holdfast.task_contexts USING btree (tenant, owner, created_at, id) WHERE (created_at > '-infinity'::timestamp with time zone);

CREATE TABLE holdfast.task_edges (
    from_state text COLLATE "C",
    to_state text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL
);

CREATE TABLE holdfast.task_events (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    number bigint,
    from_state text COLLATE "C",
    to_state text COLLATE "C",
    worker text COLLATE "C",
    attempt bigint,
    run_after timestamp with time zone,
    note text,
    request text COLLATE "C",
    message_id text COLLATE "C",
    written_at timestamp with time zone,
    context_key bigint,
    stored bigint,
    step_key text COLLATE "C",
    step_kind text COLLATE "C",
    step_name text COLLATE "C",
    step_occurrence bigint,
    chunks bigint,
    digest text COLLATE "C",
    artifact_id text COLLATE "C",
    append boolean,
    last_chunk boolean,
    name text,
    metadata text,
    body text,
    started_at timestamp with time zone,
    by_name text COLLATE "C" DEFAULT NULLIF(current_setting('holdfast.by'::text, true), ''::text),
    app_version text COLLATE "C",
    written_by xid8 DEFAULT pg_current_xact_id(),
    PRIMARY KEY (tenant, task_id, seq)
);

CREATE INDEX task_changes ON holdfast.task_events USING btree (tenant, written_by, task_id, seq) WHERE ((kind = 'transition'::text) AND (written_by IS NOT NULL));
CREATE INDEX task_chunks ON holdfast.task_events USING btree (tenant, task_id, artifact_id, seq) WHERE (kind = 'artifact'::text);
CREATE INDEX task_chunks_of_step ON holdfast.task_events USING btree (tenant, step_key, fence, seq) WHERE ((kind = 'artifact'::text) AND (step_key IS NOT NULL));
CREATE UNIQUE INDEX task_messages_by_name ON holdfast.task_events USING btree (tenant, message_id, task_id) WHERE (kind = 'message'::text);
CREATE INDEX task_messages_in_order ON holdfast.task_events USING btree (tenant, task_id, seq) WHERE (kind = 'message'::text);
CREATE INDEX task_messages_of_context ON holdfast.task_events USING btree (tenant, context_key, stored) WHERE (kind = 'message'::text);
CREATE INDEX task_moves ON holdfast.task_events USING btree (tenant, task_id, seq) WHERE ((kind = 'request'::text) OR ((kind = 'transition'::text) AND (number > 1) AND (to_state <> ALL (ARRAY['completed'::text, 'failed'::text, 'canceled'::text, 'rejected'::text]))));
CREATE UNIQUE INDEX task_steps_by_key ON holdfast.task_events USING btree (tenant, step_key) WHERE (kind = 'step'::text);
CREATE INDEX task_steps_in_order ON holdfast.task_events USING btree (tenant, task_id, seq) WHERE (kind = 'step'::text);

CREATE TABLE holdfast.task_feedback (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    given bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    text text NOT NULL,
    rating bigint,
    metadata text NOT NULL,
    digest text COLLATE "C" NOT NULL,
    created_at timestamp with time zone NOT NULL,
    PRIMARY KEY (tenant, task_id, id)
);

CREATE TABLE holdfast.task_inbox (
    tenant text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    topic text COLLATE "C" NOT NULL,
    body text NOT NULL,
    digest text COLLATE "C" NOT NULL,
    sent_at timestamp with time zone NOT NULL,
    received boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, task_id, id)
);

CREATE INDEX task_inbox_by_task ON holdfast.task_inbox USING btree (task_id, tenant, topic, number) WHERE (NOT received);

CREATE TABLE holdfast.task_starts (
    tenant text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    at timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL
);

CREATE INDEX task_starts_counted ON holdfast.task_starts USING btree (tenant, until);

CREATE TABLE holdfast.tasks (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    context_key bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    max_attempts bigint NOT NULL,
    submit_key text COLLATE "C" NOT NULL,
    submit_digest text COLLATE "C" NOT NULL,
    retry_of text COLLATE "C" NOT NULL,
    created_at timestamp with time zone NOT NULL,
    state text COLLATE "C" NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    note text NOT NULL DEFAULT '""'::text,
    status_seq bigint,
    version bigint NOT NULL,
    transitions bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    worker text COLLATE "C" NOT NULL DEFAULT ''::text,
    lane text COLLATE "C" NOT NULL DEFAULT ''::text,
    lease_expires_at timestamp with time zone,
    run_after timestamp with time zone,
    due_at timestamp with time zone NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    pause_requested boolean NOT NULL DEFAULT false,
    ask_kind text COLLATE "C",
    ask_name text COLLATE "C",
    ask_occurrence bigint,
    has_push boolean NOT NULL DEFAULT false,
    has_step_chunks boolean NOT NULL DEFAULT false,
    followed_until timestamp with time zone,
    copied boolean NOT NULL DEFAULT false,
    has_cleanup boolean NOT NULL DEFAULT false,
    lease_seconds double precision,
    adopted boolean NOT NULL DEFAULT false,
    result text,
    parent_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    awaited boolean NOT NULL DEFAULT false,
    waits_for bigint NOT NULL DEFAULT 0,
    waits_topic text COLLATE "C",
    has_inbox boolean NOT NULL DEFAULT false,
    ask_form text,
    priority smallint NOT NULL DEFAULT 0,
    limit_key text COLLATE "C" NOT NULL DEFAULT ''::text,
    handler_version text COLLATE "C" NOT NULL DEFAULT ''::text,
    app_version text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor=70);

CREATE UNIQUE INDEX tasks_at_work ON holdfast.tasks USING btree (tenant, context_key, lane) WHERE (state = 'working'::text);
CREATE UNIQUE INDEX tasks_by_key ON holdfast.tasks USING btree (tenant, submit_key, owner) WHERE (submit_key <> ''::text);
CREATE INDEX tasks_by_parent ON holdfast.tasks USING btree (parent_id, tenant, id) WHERE (parent_id <> ''::text);
CREATE INDEX tasks_by_priority ON holdfast.tasks USING btree (tenant, priority, due_at, id) WHERE ((state = 'submitted'::text) AND (priority > 0));
CREATE INDEX tasks_by_rare_state ON holdfast.tasks USING btree (tenant, state, updated_at, id) WHERE (state = ANY (ARRAY['input-required'::text, 'auth-required'::text, 'paused'::text, 'failed'::text, 'canceled'::text, 'rejected'::text]));
CREATE INDEX tasks_listed ON holdfast.tasks USING btree (tenant, updated_at, id) WHERE (updated_at > '-infinity'::timestamp with time zone);
CREATE INDEX tasks_listed_by_owner ON holdfast.tasks USING btree (tenant, owner, updated_at, id) WHERE ((owner <> ''::text) AND (updated_at > '-infinity'::timestamp with time zone));
CREATE INDEX tasks_of_context ON holdfast.tasks USING btree (context_key);
CREATE INDEX tasks_queue ON holdfast.tasks USING btree (tenant, due_at, id) WHERE (state = 'submitted'::text);
CREATE INDEX tasks_queue_of_context ON holdfast.tasks USING btree (context_key, due_at, id) WHERE (state = 'submitted'::text);
CREATE INDEX tasks_uncopied ON holdfast.tasks USING btree (tenant, updated_at, id) WHERE ((NOT copied) AND (state <> ALL (ARRAY['submitted'::text, 'working'::text])));

CREATE TRIGGER forget_task AFTER DELETE ON holdfast.tasks FOR EACH ROW WHEN ((old.awaited OR old.has_inbox)) EXECUTE FUNCTION holdfast.forget_task();
CREATE TRIGGER task_ended AFTER UPDATE OF state ON holdfast.tasks FOR EACH ROW WHEN ((new.has_cleanup AND (new.state = ANY (ARRAY['completed'::text, 'failed'::text, 'canceled'::text, 'rejected'::text])))) EXECUTE FUNCTION holdfast.clean_up_task();
CREATE TRIGGER task_removed AFTER DELETE ON holdfast.tasks FOR EACH ROW WHEN (old.has_cleanup) EXECUTE FUNCTION holdfast.clean_up_task();
CREATE TRIGGER uncopy_task BEFORE UPDATE ON holdfast.tasks FOR EACH ROW WHEN ((old.copied AND (new.state IS DISTINCT FROM old.state) AND (NOT new.adopted))) EXECUTE FUNCTION holdfast.uncopy_task();
CREATE TRIGGER wake_parent_task AFTER UPDATE OF state ON holdfast.tasks FOR EACH ROW WHEN ((new.awaited AND (new.state = ANY (ARRAY['completed'::text, 'failed'::text, 'canceled'::text, 'rejected'::text])) AND (old.state IS DISTINCT FROM new.state))) EXECUTE FUNCTION holdfast.wake_parent_task();

CREATE TABLE holdfast.threads (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    ttl_seconds double precision,
    expires_at timestamp with time zone,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, key)
) WITH (fillfactor=70);

CREATE INDEX threads_expiry ON holdfast.threads USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE TABLE holdfast.unembedded_events (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch integer NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    taken_until timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
    PRIMARY KEY (tenant, agent, session_key, epoch, first_seq)
);

CREATE TABLE holdfast.unindexed_events (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    session_key bigint NOT NULL,
    epoch integer NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    PRIMARY KEY (tenant, agent, session_key, epoch, first_seq)
);

CREATE TRIGGER queue_for_embedding AFTER DELETE ON holdfast.unindexed_events REFERENCING OLD TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION holdfast.queue_for_embedding();

CREATE VIEW holdfast.event_lexemes AS
 SELECT (n COLLATE "C") AS tenant,
    (n COLLATE "C") AS agent,
    (n COLLATE "C") AS lexeme,
    (n)::bigint AS documents,
    (n)::integer AS most
   FROM holdfast.index_replaced() n(n);

CREATE VIEW holdfast.event_postings AS
 SELECT (n COLLATE "C") AS tenant,
    (n COLLATE "C") AS agent,
    (n COLLATE "C") AS lexeme,
    (n)::bigint AS session_key,
    (n)::integer AS epoch,
    (n)::bigint AS seq,
    (n)::integer AS times,
    (n)::integer AS length
   FROM holdfast.index_replaced() n(n);

CREATE VIEW holdfast.event_totals AS
 SELECT (n COLLATE "C") AS tenant,
    (n COLLATE "C") AS agent,
    (n)::bigint AS documents,
    (n)::bigint AS length
   FROM holdfast.index_replaced() n(n);

CREATE VIEW holdfast.indexed_events AS
 SELECT (n COLLATE "C") AS tenant,
    (n)::bigint AS session_key,
    (n)::integer AS epoch,
    (n)::bigint AS seq,
    (n)::integer AS length,
    ((n)::text[] COLLATE "C") AS lexemes
   FROM holdfast.index_replaced() n(n);

CREATE VIEW holdfast.linked_task_records AS
 SELECT t.tenant,
    t.id,
    t.context_id,
    t.agent,
    t.state,
    t.created_at,
    t.updated_at,
    t.owner,
    t.note,
    t.metadata,
    t.version,
    t.fence,
    t.attempts,
    t.max_attempts,
    t.worker,
    t.lease_expires_at,
    t.run_after,
    t.cancel_requested,
    t.pause_requested,
    t.submit_key,
    t.retry_of,
    m.message_id AS status_id,
    m.written_at AS status_at,
    m.seq AS status_seq,
    m.body AS status_body,
    t.result,
    t.parent_id,
    t.priority,
    t.limit_key,
    t.handler_version
   FROM (holdfast.tasks t
     LEFT JOIN LATERAL ( SELECT e.message_id,
            e.written_at,
            e.seq,
            e.body
           FROM holdfast.task_events e
          WHERE ((e.tenant = t.tenant) AND (e.task_id = t.id) AND (e.seq = t.status_seq))
         LIMIT 1) m ON (true));

CREATE VIEW holdfast.outbox_entries AS
 SELECT o.config_id,
    o.due_at,
    o.attempts,
    o.last_error,
    o.dead,
    o.number AS place,
    p.url,
    p.token,
    p.authentication,
    e.tenant,
    e.task_id,
    e.seq,
    e.kind,
    e.at,
    e.actor,
    e.fence,
    e.number,
    e.from_state,
    e.to_state,
    e.worker,
    e.attempt,
    e.run_after,
    e.note,
    e.request,
    e.message_id,
    e.written_at,
    e.context_key,
    e.stored,
    e.step_key,
    e.step_kind,
    e.step_name,
    e.step_occurrence,
    e.chunks,
    e.digest,
    e.artifact_id,
    e.append,
    e.last_chunk,
    e.name,
    e.metadata,
    e.body,
    p.owner
   FROM ((holdfast.outbox o
     JOIN holdfast.push_configs p ON (((p.tenant = o.tenant) AND (p.task_id = o.task_id) AND (p.id = o.config_id))))
     JOIN holdfast.task_events e ON (((e.tenant = o.tenant) AND (e.task_id = o.task_id) AND (e.seq = o.seq))));

CREATE VIEW holdfast.task_records AS
 SELECT t.tenant,
    t.id,
    t.context_id,
    t.agent,
    t.state,
    t.created_at,
    t.updated_at,
    t.owner,
    t.note,
    t.metadata,
    t.version,
    t.fence,
    t.attempts,
    t.max_attempts,
    t.worker,
    t.lease_expires_at,
    t.run_after,
    t.cancel_requested,
    t.pause_requested,
    t.submit_key,
    t.retry_of,
    m.message_id AS status_id,
    m.written_at AS status_at,
    m.seq AS status_seq,
    m.body AS status_body
   FROM (holdfast.tasks t
     LEFT JOIN LATERAL ( SELECT e.message_id,
            e.written_at,
            e.seq,
            e.body
           FROM holdfast.task_events e
          WHERE ((e.tenant = t.tenant) AND (e.task_id = t.id) AND (e.seq = t.status_seq))
         LIMIT 1) m ON (true));

-- Functions:
--   acting(in_by text, in_tenant text) RETURNS text
--   add_cards(in_tenant text, in_board_id text, in_card_ids text[], in_titles text[]) RETURNS bigint
--   add_entities(the_tenant text, the_ids text[], the_bodies text[], named text[], the_names text[]) RETURNS void
--   add_relationships(the_tenant text, the_ids text[], the_sources text[], the_targets text[], the_types text[], the_bodies text[]) RETURNS void
--   add_task_cleanup(in_tenant text, in_id text, in_fence bigint, in_kind text, in_ref text, in_agent text) RETURNS void
--   adopt_model(the_tenant text, the_model text, the_dimension integer) RETURNS boolean
--   adopt_task(in_tenant text, in_id text, in_owner text, in_context_id text, in_agent text, in_metadata text, in_kinds text[], in_states text[], in_notes text[], in_ats timestamp with time zone[], in_metadatas text[], in_message_ids text[], in_message_ats timestamp with time zone[], in_bodies text[], in_digests text[], in_artifact_ids text[], in_appends boolean[], in_lasts boolean[]) RETURNS SETOF holdfast.task_records
--   adopt_turn_model(the_tenant text, the_model text, the_dimension integer, context boolean) RETURNS boolean
--   advance_outbox(in_tenant text, in_task_id text, in_config_id text) RETURNS void
--   advance_versions(the_sequence text, the_version bigint) RETURNS void
--   agents_to_index(at_most bigint) RETURNS TABLE(tenant text, agent text)
--   agents_with_events(the_tenant text, the_beginning text, the_other text, the_limit integer) RETURNS SETOF text
--   answer_task(in_tenant text, in_id text, in_owner text, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_result text, in_form text) RETURNS SETOF holdfast.linked_task_records
--   append_cards(in_tenant text, in_board_id text, in_card_ids text[], in_titles text[], OUT first bigint, OUT at timestamp with time zone) RETURNS record
--   append_embedded_events(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_numbers real[], the_dimension integer) RETURNS TABLE(place integer, epoch integer, seq bigint)
--   append_event(the_tenant text, the_session text, the_agent text, the_type text, the_id text, the_run text, the_time timestamp with time zone, the_body text) RETURNS TABLE(place integer, epoch integer, seq bigint)
--   append_events(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[]) RETURNS TABLE(place integer, epoch integer, seq bigint)
--   append_task_chunk(in_tenant text, in_id text, in_fence bigint, in_artifact_id text, in_body text, in_append boolean, in_last boolean, in_name text, in_metadata text, in_step_kind text, in_step_name text, in_step_occurrence bigint) RETURNS boolean
--   append_task_feedback(in_tenant text, in_task_id text, in_owner text, in_id text, in_text text, in_rating bigint, in_metadata text, in_digest text) RETURNS SETOF holdfast.task_feedback
--   append_task_message(in_tenant text, in_id text, in_fence bigint, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, OUT out_id text, OUT out_at timestamp with time zone, OUT out_seq bigint, OUT out_body text) RETURNS record
--   append_task_remark(in_tenant text, in_id text, in_fence bigint, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_step_kind text, in_step_name text, in_step_occurrence bigint, in_result text, OUT out_id text, OUT out_at timestamp with time zone, OUT out_seq bigint, OUT out_body text) RETURNS record
--   append_to_session(the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[]) RETURNS TABLE(place integer, epoch integer, seq bigint)
--   await_children(in_tenant text, in_id text, in_children text[]) RETURNS bigint
--   backlog(these text[], at_most bigint) RETURNS TABLE(kind text, state text, agent text, amount double precision)
--   begin_erasure(in_tenant text, in_id text, in_kind text, in_scope_id text, in_counts text) RETURNS SETOF holdfast.erasures
--   bury_turn(the_tenant text, the_letter text, the_session text, the_event text, the_epoch integer, the_seq bigint, the_payload bytea, the_reason text) RETURNS void
--   cancel_task(in_tenant text, in_id text, in_owner text, in_note text) RETURNS SETOF holdfast.task_records
--   cancel_task_tree(in_tenant text, in_id text, in_owner text, in_note text) RETURNS SETOF holdfast.linked_task_records
--   change_card(in_tenant text, in_board_id text, in_id text, in_status text, in_title text, in_note text, in_retry_count bigint, in_final text[], in_expected bigint) RETURNS TABLE(was text, had bigint, id text, title text, status text, "position" bigint, retry_count bigint, note text, version bigint, updated_at timestamp with time zone)
--   check_login(VARIADIC these text[]) RETURNS void
--   check_task_edge(in_id text, in_from text, in_to text, in_actor text) RETURNS void
--   choose_tasks(in_tenant text, in_agents text[], in_limit bigint, in_serial boolean, in_now timestamp with time zone, in_limits jsonb, in_versions jsonb) RETURNS TABLE(place tid, context_key bigint, awaited boolean)
--   claim_due_tasks(in_tenant text, in_worker text, in_agents text[], in_limit bigint, in_lease_seconds double precision, in_serial boolean, in_history bigint, in_limits jsonb, in_versions jsonb, in_app_version text) RETURNS SETOF holdfast.claimed_version
--   claim_fact_key(the_tenant text, the_scope bigint, the_key text, the_fingerprint text) RETURNS text
--   claim_outbox(in_tenant text, in_limit bigint, in_lease_seconds double precision) RETURNS SETOF holdfast.outbox_entries
--   claim_outbox_fairly(in_tenant text, in_limit bigint, in_lease_seconds double precision, in_per_owner bigint, in_busy_owners text[], in_busy_counts bigint[]) RETURNS SETOF holdfast.outbox_entries
--   claim_tasks(in_tenant text, in_worker text, in_agents text[], in_limit bigint, in_lease_seconds double precision, in_serial boolean, in_history bigint) RETURNS SETOF holdfast.claimed_task
--   clean_up_task() RETURNS trigger
--   clear_events(the_tenant text, the_session text, the_agent text, the_run text, the_types text[]) RETURNS bigint
--   clear_events_until(the_tenant text, the_session text, the_agent text, the_run text, the_types text[], until_epoch integer, until_seq bigint) RETURNS TABLE(id text, epoch integer, seq bigint)
--   clear_facts(the_tenant text, the_namespace text, the_agent text) RETURNS void
--   clear_task_context(in_tenant text, in_owner text, in_id text) RETURNS bigint
--   common_word_candidates(one holdfast.event_agents, average double precision, the_lexeme text, holding bigint, weight double precision, the_limit bigint, the_session bigint, the_owner text, k1 double precision, b double precision) RETURNS integer[]
--   complete_tasks(in_tenant text, in_ids text[], in_fences bigint[], in_workers text[]) RETURNS TABLE(task_id text, reached text)
--   complete_tasks_with(in_tenant text, in_ids text[], in_fences bigint[], in_workers text[], in_results text[], in_message_ids text[], in_message_times timestamp with time zone[], in_message_bodies text[], in_message_digests text[]) RETURNS TABLE(task_id text, reached text)
--   confine_tables() RETURNS integer
--   cool_session(the_tenant text, the_session text, the_heat bigint) RETURNS boolean
--   copy_thread(in_tenant text, in_source text, in_target text) RETURNS bigint
--   correct_leases(in_tenant text) RETURNS void
--   count_ended_child(in_tenant text, in_parent_id text) RETURNS void
--   count_task_event(in_tenant text, in_id text, in_fence bigint, OUT seq bigint, OUT context_key bigint, OUT has_push boolean, OUT has_step_chunks boolean, OUT followed_until timestamp with time zone) RETURNS record
--   create_board(in_tenant text, in_id text, in_conversation_id text, in_agent_id text, in_agent_label text, in_parent_agent_id text, in_max_retries bigint, in_card_ids text[], in_titles text[]) RETURNS void
--   delete_collection(the_tenant text, the_collection text) RETURNS bigint
--   delete_entity(the_tenant text, the_id text) RETURNS boolean
--   delete_events(the_tenant text, the_session text, the_ids text[]) RETURNS TABLE(id text, epoch integer, seq bigint)
--   delete_fact(the_tenant text, the_namespace text, the_agent text, the_id text) RETURNS boolean
--   delete_facts(the_tenant text, the_scope bigint, the_ids text[]) RETURNS bigint
--   delete_push_config(in_tenant text, in_task_id text, in_owner text, in_id text) RETURNS boolean
--   delete_runs(in_tenant text, in_runs text[], in_begins text, in_begins_not text) RETURNS bigint
--   delete_session(the_tenant text, the_session text) RETURNS TABLE(id text, epoch integer, seq bigint)
--   delete_task(in_tenant text, in_id text, in_owner text) RETURNS boolean
--   distributed_text(in_text text) RETURNS text
--   distribution() RETURNS TABLE(kind text, name text, wanted text, found text, statement text)
--   documents_holding(the_tenant text, the_collection text, the_parts text[]) RETURNS SETOF text
--   drop_checkpoints(in_tenant text, in_keys bigint[], in_namespaces text[], in_ids text[]) RETURNS bigint
--   due_tasks(in_tenant text, in_agents text[], in_limit bigint, in_serial boolean, in_now timestamp with time zone, in_priority smallint, in_chosen tid[], in_contexts bigint[], in_full_agents text[], in_full_keys text[], in_versions jsonb) RETURNS TABLE(place tid, context_key bigint, agent text, limit_key text, awaited boolean)
--   erase_rest(in_tenant text, in_kind text, in_id text) RETURNS void
--   erases_agent(in_kind text, in_id text, stored text) RETURNS boolean
--   erases_id(in_kind text, in_id text, stored text) RETURNS boolean
--   erases_owner(in_kind text, in_id text, in_owner text) RETURNS boolean
--   erases_session(in_kind text, in_id text, stored text) RETURNS boolean
--   erases_task(in_kind text, in_id text, in_owner text, in_context text, in_agent text) RETURNS boolean
--   event_passes(the_tenant text, the_session bigint, the_epoch integer, the_seq bigint, the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, the_owner text, the_path jsonpath, the_values jsonb) RETURNS boolean
--   events_by_ids(the_tenant text, the_sessions bigint[], the_ids text[]) RETURNS TABLE(at integer, stored holdfast.events)
--   events_of_fork(in_tenant text, in_id text, in_until bigint) RETURNS SETOF holdfast.task_events
--   events_to_index() RETURNS bigint
--   fact_words(the_tenant text, the_scope bigint, the_language text, the_lexemes text[], moment timestamp with time zone, k1 double precision, b double precision) RETURNS TABLE(number bigint, score double precision)
--   fail(state text, message text, facts jsonb) RETURNS void
--   fail_lease(in_id text) RETURNS void
--   fail_task_edge(in_id text, in_from text, in_to text) RETURNS void
--   filled_tables() RETURNS SETOF text
--   filterable_of(the_body text) RETURNS jsonb
--   find_submitted(in_tenant text, in_id text, in_owner text, in_submit_key text, in_digest text) RETURNS text
--   finish_erasure(in_tenant text, in_id text, in_number bigint, in_receipt text, in_sha256 text) RETURNS SETOF holdfast.erasures
--   first_of_ties(the_tenant text, the_key integer, the_numbers integer[], the_scores double precision[], the_limit bigint) RETURNS integer[]
--   first_task_message(in_tenant text, in_task_id text) RETURNS TABLE(first_id text, first_at timestamp with time zone, first_seq bigint, first_body text)
--   flush_events(the_tenant text, the_sessions text[], the_epochs integer[], the_seqs bigint[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[]) RETURNS TABLE(place integer, outcome text, ahead integer)
--   flush_turns(the_tenant text, the_sessions text[], the_epochs integer[], the_seqs bigint[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[]) RETURNS TABLE(place integer, outcome text, ahead integer)
--   forget_earlier_states() RETURNS trigger
--   forget_task() RETURNS trigger
--   fork_session(the_tenant text, the_session text, the_at bigint, the_into text) RETURNS SETOF holdfast.sessions
--   fork_task(in_tenant text, in_id text, in_owner text, in_new_id text, in_new_context_id text, in_at bigint, in_failed boolean, in_submit_key text, in_digest text, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text) RETURNS SETOF holdfast.task_records
--   functions_by_tenant() RETURNS TABLE(oid oid, name text, is_alone boolean, draws_no_number boolean, distributed text)
--   grant_views_on_workers() RETURNS void
--   hand_over(in_role text) RETURNS integer
--   has_message(in_tenant text, in_task_id text, in_topic text) RETURNS boolean
--   has_moves() RETURNS boolean
--   hold_dimension(the_tenant text, the_collection text, wanted integer) RETURNS integer
--   hold_fact_scope(the_tenant text, the_namespace text, the_agent text, the_language text) RETURNS bigint
--   hold_task(in_tenant text, in_id text, in_fence bigint) RETURNS holdfast.tasks
--   index_events(the_tenant text, the_agent text, range_keys bigint[], range_epochs integer[], range_starts bigint[], event_ranges integer[], event_seqs bigint[], event_lengths integer[], posting_events integer[], posting_lexemes text[], posting_times integer[]) RETURNS void
--   index_replaced() RETURNS SETOF text
--   index_with_vectors(the_tenant text, the_agent text, the_version bigint, range_keys bigint[], range_epochs integer[], range_starts bigint[], event_keys bigint[], event_epochs integer[], event_seqs bigint[], event_lengths integer[], event_speakers text[], event_said boolean[], event_asks boolean[], event_borrows boolean[], block_lexemes text[], block_firsts integer[], block_lasts integer[], block_mosts integer[], block_shortests integer[], block_starts integer[], block_words text[], block_packed boolean[], the_postings bigint[], the_levels integer, range_ends bigint[], the_model text, the_dimension integer, the_ordinals integer[], the_vectors real[]) RETURNS integer
--   index_words(the_tenant text, the_agent text, the_version bigint, range_keys bigint[], range_epochs integer[], range_starts bigint[], event_keys bigint[], event_epochs integer[], event_seqs bigint[], event_lengths integer[], event_speakers text[], event_said boolean[], event_asks boolean[], event_borrows boolean[], block_lexemes text[], block_firsts integer[], block_lasts integer[], block_mosts integer[], block_shortests integer[], block_starts integer[], block_words text[], block_packed boolean[], the_postings bigint[], the_levels integer) RETURNS integer
--   insert_fact(the_tenant text, the_scope bigint, the_id text, the_content text, the_metadata text, the_topic text, the_confidence double precision, the_source text, the_entities text[], the_key text, the_fingerprint text, moment timestamp with time zone, the_expiry timestamp with time zone, the_language text, the_length integer, the_lexemes text[], the_times integer[], the_subject text) RETURNS void
--   is_distributed(the_table regclass) RETURNS boolean
--   is_same_event(stored holdfast.events, the_agent text, the_type text, the_run text, the_body text) RETURNS boolean
--   item_path(in_namespace text) RETURNS text[]
--   item_path_key(the_path text[]) RETURNS text
--   json_items(found jsonb) RETURNS SETOF jsonb
--   json_number(item jsonb) RETURNS numeric
--   json_text(item jsonb) RETURNS text
--   keep_earlier_state() RETURNS trigger
--   keep_embeddings(the_tenant text, the_model text, the_dimension integer, range_agents text[], range_keys bigint[], range_epochs integer[], range_starts bigint[], range_done bigint[], event_keys bigint[], event_epochs integer[], event_seqs bigint[], the_numbers real[], refused_keys bigint[], refused_epochs integer[], refused_seqs bigint[]) RETURNS boolean
--   keep_event_vectors(the_tenant text, the_sessions text[], the_ids text[], the_numbers real[], the_dimension integer) RETURNS void
--   keep_task_files(in_tenant text, in_id text, in_refs text[]) RETURNS boolean
--   keep_task_step(in_tenant text, in_task_id text, in_seq bigint, in_fence bigint, in_has_chunks boolean, in_actor text, in_now timestamp with time zone, in_kind text, in_name text, in_occurrence bigint, in_body text, in_digest text, in_message_id text) RETURNS boolean
--   keep_timed_task_step(in_tenant text, in_task_id text, in_seq bigint, in_fence bigint, in_has_chunks boolean, in_actor text, in_now timestamp with time zone, in_kind text, in_name text, in_occurrence bigint, in_body text, in_digest text, in_message_id text, in_started_at timestamp with time zone) RETURNS boolean
--   keep_turn_vectors(the_tenant text, the_model text, the_dimension integer, range_agents text[], range_keys bigint[], range_epochs integer[], range_starts bigint[], range_done bigint[], event_keys bigint[], event_epochs integer[], event_seqs bigint[], event_numbers integer[], the_numbers real[], refused_keys bigint[], refused_epochs integer[], refused_seqs bigint[]) RETURNS boolean
--   leave_task(in_tenant text, in_id text, in_fence bigint, in_to text, in_note text, in_run_after timestamp with time zone, in_run_after_seconds double precision, in_progress boolean, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_ask_kind text, in_ask_name text, in_ask_occurrence bigint, in_ask_form text, in_result text, in_children text[], in_topic text) RETURNS SETOF holdfast.linked_task_records
--   limit_scope(in_agent text, in_keyed boolean, task_agent text, task_key text) RETURNS text
--   limits_of_task(in_limits jsonb, in_agent text, in_key text) RETURNS TABLE(keyed boolean, concurrency bigint, count bigint, seconds double precision, scope text, period text)
--   list_tenants(after_tenant text, at_most bigint) RETURNS TABLE(tenant text)
--   load_events(the_tenant text, the_sessions text[], the_epochs integer[], the_seqs bigint[], the_ids text[], the_agents text[], the_types text[], the_times timestamp with time zone[], the_bodies text[], the_runs text[], the_filterables text[]) RETURNS void
--   load_fact(the_tenant text, the_namespace text, the_agent text, the_id text, the_content text, the_time timestamp with time zone, the_confidence double precision, the_metadata text, the_topic text, the_source text, the_entities text[], the_key text, the_fingerprint text, the_expiry timestamp with time zone, the_successor text, the_language text, the_length integer, the_lexemes text[], the_times integer[]) RETURNS void
--   load_fact_about(the_tenant text, the_namespace text, the_agent text, the_id text, the_content text, the_time timestamp with time zone, the_confidence double precision, the_metadata text, the_topic text, the_source text, the_entities text[], the_key text, the_fingerprint text, the_expiry timestamp with time zone, the_successor text, the_language text, the_length integer, the_lexemes text[], the_times integer[], the_subject text) RETURNS void
--   load_items(the_tenant text, the_owners text[], the_namespaces text[], the_keys text[], the_versions bigint[], the_creations timestamp with time zone[], the_updates timestamp with time zone[], the_values text[], the_vectors text[], the_ttls double precision[], the_expiries timestamp with time zone[], the_filterables text[]) RETURNS void
--   load_items_about(the_tenant text, the_owners text[], the_namespaces text[], the_keys text[], the_versions bigint[], the_creations timestamp with time zone[], the_updates timestamp with time zone[], the_values text[], the_vectors text[], the_ttls double precision[], the_expiries timestamp with time zone[], the_filterables text[], the_subjects text[]) RETURNS void
--   lock_event_agent(the_tenant text, the_agent text) RETURNS holdfast.event_agents
--   lock_limits(in_tenant text) RETURNS void
--   lock_outbox(in_tenant text, in_task_id text, in_config_id text) RETURNS boolean
--   lock_session(the_tenant text, the_session text, the_agent text) RETURNS holdfast.sessions
--   lock_task(in_tenant text, in_id text, in_owner text) RETURNS holdfast.tasks
--   mark_delivered(in_tenant text, in_task_id text, in_config_id text, in_seq bigint) RETURNS boolean
--   mark_failed(in_tenant text, in_task_id text, in_config_id text, in_seq bigint, in_attempts bigint, in_error text, in_max_attempts bigint, in_delay_seconds double precision) RETURNS boolean
--   matching_tasks(in_tenant text, in_owner text, in_context_id text, in_agent text, in_after timestamp with time zone, in_states text[], in_before timestamp with time zone, in_prefix text, in_worker text, in_text text, in_children boolean) RETURNS SETOF holdfast.tasks
--   merge_block_slice(the_tenant text, the_agent text, the_slice integer, the_slices integer) RETURNS bigint
--   merge_blocks(the_tenant text, the_agent text) RETURNS bigint
--   move_session(the_tenant text, old_prefix text, the_session text, new_prefix text, the_name text) RETURNS text
--   move_task(task holdfast.tasks, in_to text, in_actor text, in_now timestamp with time zone, in_note text, in_run_after timestamp with time zone, in_said bigint, in_status_seq bigint, in_status_id text, in_keeps_place boolean) RETURNS void
--   moves_after(the_tenant text, the_session text, at_most bigint) RETURNS TABLE(tenant text, session text, owner text, needs_hot_store boolean)
--   near_candidates(one holdfast.event_agents, the_vector real[], the_model text, the_limit bigint, the_key bigint, the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, the_owner text, the_path jsonpath, the_values jsonb) RETURNS integer[]
--   near_events(the_tenant text, the_agent text, the_vector real[], the_limit bigint, the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, the_owner text, the_path jsonpath, the_values jsonb) RETURNS TABLE(session_key bigint, epoch integer, seq bigint, distance double precision)
--   newest_message(the_tenant text, the_key bigint, the_agent text) RETURNS holdfast.events
--   next_state_version(the_last bigint) RETURNS bigint
--   no_tenant() RETURNS text
--   notify(in_topic text) RETURNS void
--   now() RETURNS timestamp with time zone
--   number_by_node() RETURNS trigger
--   numbers_reached(the_tenant text, start bigint, depth bigint, the_types text[], along boolean, against boolean, most bigint) RETURNS bigint[]
--   open_item_namespace(in_tenant text, in_owner text, in_path text[], in_make boolean) RETURNS bigint
--   open_thread(in_tenant text, in_id text, in_ttl_seconds double precision, in_alone boolean) RETURNS bigint
--   operable_tasks(in_tenant text, in_owner text, in_context_id text, in_agent text, in_after timestamp with time zone, in_states text[], in_before timestamp with time zone, in_prefix text, in_worker text, in_text text, in_what text) RETURNS SETOF holdfast.tasks
--   own_push_config() RETURNS trigger
--   owner_of(the_id text) RETURNS text
--   owner_prefix(the_owner text) RETURNS text
--   packed_words(the_lexemes text[], the_packed integer[], OUT words text, OUT packed integer[]) RETURNS record
--   pause_task(in_tenant text, in_id text, in_owner text, in_note text) RETURNS SETOF holdfast.task_records
--   payload_fits(the_filterable jsonb, the_body text, the_path jsonpath, the_values jsonb) RETURNS boolean
--   pop_message(the_tenant text, the_session text, the_agent text) RETURNS TABLE(body text, id text, occurred_at timestamp with time zone, seq bigint, epoch integer, run text)
--   postings_of(the_key integer, the_levels integer, the_lexeme text, the_numbers integer[]) RETURNS TABLE(at integer, times double precision, length double precision)
--   prune_threads(in_tenant text, in_threads text[], in_keep bigint) RETURNS bigint
--   publish(in_tenant text, in_channel text, in_id text, in_event text, in_retention_seconds double precision, OUT out_number bigint, OUT out_published_at timestamp with time zone) RETURNS record
--   purge_collections(at_most integer) RETURNS bigint
--   purge_facts(at_most integer) RETURNS bigint
--   purge_item_namespaces(in_limit integer) RETURNS bigint
--   put_blob(in_tenant text, in_place text, in_ref text, in_object_key text, in_size_bytes bigint, in_content_type text, in_sha256 text, in_ttl_seconds double precision) RETURNS holdfast.blob_index
--   put_blob_of_subject(in_tenant text, in_place text, in_ref text, in_object_key text, in_size_bytes bigint, in_content_type text, in_sha256 text, in_ttl_seconds double precision, in_subject text) RETURNS holdfast.blob_index
--   put_board(in_tenant text, in_id text, in_conversation_id text, in_agent_id text, in_agent_label text, in_parent_agent_id text, in_max_retries bigint, in_card_ids text[], in_titles text[]) RETURNS timestamp with time zone
--   put_checkpoint(in_tenant text, in_thread text, in_namespace text, in_id text, in_parent text, in_run text, in_kind text, in_body bytea, in_metadata_kind text, in_metadata bytea, in_labels jsonb, in_versions jsonb, in_channels text[], in_channel_versions text[], in_kinds text[], in_values bytea[], in_expected text, in_ttl_seconds double precision) RETURNS void
--   put_checkpoint_writes(in_tenant text, in_thread text, in_namespace text, in_id text, in_tasks text[], in_indexes integer[], in_paths text[], in_channels text[], in_kinds text[], in_values bytea[]) RETURNS void
--   put_documents(the_tenant text, the_collection text, replacing boolean, the_ids text[], the_contents text[], the_metadata text[], the_filterables text[], the_dimensions integer[], the_numbers real[], the_subjects text[]) RETURNS void
--   put_entities(the_tenant text, the_ids text[], the_bodies text[], named text[], the_names text[], the_subjects text[]) RETURNS void
--   put_item(in_tenant text, in_owner text, in_path text[], in_path_key text, in_key text, in_value text, in_filterable jsonb, in_vector vector, in_ttl_seconds double precision, in_expected bigint, in_subject text) RETURNS bigint
--   put_items(in_tenant text, in_owner text, in_namespaces text[], in_keys text[], in_values text[], in_filterables text[], in_vectors text[], in_ttl_seconds double precision[], in_expected bigint[]) RETURNS bigint[]
--   put_items_about(in_tenant text, in_owner text, in_namespaces text[], in_keys text[], in_values text[], in_filterables text[], in_vectors text[], in_ttl_seconds double precision[], in_expected bigint[], in_subjects text[]) RETURNS bigint[]
--   put_push_config(in_tenant text, in_task_id text, in_owner text, in_id text, in_url text, in_token text, in_authentication text, in_most bigint) RETURNS boolean
--   put_relationships(the_tenant text, the_ids text[], the_sources text[], the_targets text[], the_types text[], the_bodies text[], the_subjects text[]) RETURNS void
--   put_schedule(in_tenant text, in_owner text, in_id text, in_uid text, in_cron text, in_timezone text, in_agent text, in_message text, in_context_id text, in_metadata text, in_missed text, in_missed_limit bigint, in_grace_seconds double precision, in_max_attempts bigint, in_digest text, in_replace boolean) RETURNS SETOF holdfast.schedules
--   put_state(in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision, in_dropped text[], in_replace boolean, in_expected bigint, in_versions integer) RETURNS bigint
--   put_state_at_version(in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision, in_dropped text[], in_replace boolean, in_expected bigint) RETURNS bigint
--   queue_for_embedding() RETURNS trigger
--   queue_task(in_tenant text, in_id text, in_owner text, in_context_id text, in_new_context_id text, in_agent text, in_metadata text, in_max_attempts bigint, in_submit_key text, in_digest text, in_retry_of text, in_run_after timestamp with time zone, in_run_after_seconds double precision, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_push_ids text[], in_push_urls text[], in_push_tokens text[], in_push_auths text[], in_priority bigint, in_limit_key text, in_now timestamp with time zone) RETURNS SETOF holdfast.linked_task_records
--   queue_task_once(in_tenant text, in_id text, in_owner text, in_context_id text, in_new_context_id text, in_agent text, in_metadata text, in_max_attempts bigint, in_submit_key text, in_digest text, in_retry_of text, in_run_after timestamp with time zone, in_run_after_seconds double precision, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_push_ids text[], in_push_urls text[], in_push_tokens text[], in_push_auths text[], in_priority bigint, in_limit_key text, in_now timestamp with time zone) RETURNS SETOF holdfast.linked_task_records
--   queue_tasks(in_tenant text, in_owner text, in_ids text[], in_context_ids text[], in_new_context_ids text[], in_agents text[], in_metadata text[], in_max_attempts bigint[], in_submit_keys text[], in_digests text[], in_run_after timestamp with time zone[], in_run_after_seconds double precision[], in_message_ids text[], in_message_ats timestamp with time zone[], in_message_bodies text[], in_message_digests text[], in_priorities bigint[], in_limit_keys text[]) RETURNS SETOF holdfast.linked_task_records
--   rank_by_words(the_tenant text, the_agent text, the_lexemes text[], the_limit bigint, the_session text, the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, the_owner text, the_path jsonpath, the_values jsonb, k1 double precision, b double precision) RETURNS TABLE(session_key bigint, epoch integer, seq bigint, score double precision)
--   reached(start bigint, depth bigint, the_types text[], along boolean, against boolean, most bigint) RETURNS bigint[]
--   receive_in_task(in_tenant text, in_id text, in_fence bigint, in_kind text, in_name text, in_occurrence bigint, in_topic text, in_last boolean) RETURNS SETOF holdfast.task_events
--   record_of_task(in_tenant text, in_id text, in_owner text, in_expected bigint, in_kinds text[], in_states text[], in_notes text[], in_ats timestamp with time zone[], in_metadatas text[], in_message_ids text[], in_message_ats timestamp with time zone[], in_bodies text[], in_digests text[], in_artifact_ids text[], in_appends boolean[], in_lasts boolean[]) RETURNS bigint
--   record_task_step(in_tenant text, in_id text, in_fence bigint, in_kind text, in_name text, in_occurrence bigint, in_body text, in_digest text, in_message_id text, OUT out_at timestamp with time zone, OUT out_digest text, OUT out_fence bigint, OUT out_chunks bigint, OUT out_body text) RETURNS record
--   recover_tasks(in_tenant text, in_limit bigint) RETURNS SETOF holdfast.task_records
--   refresh_items(in_tenant text, in_owner text, in_namespaces text[], in_keys text[]) RETURNS TABLE(at integer, value text, version bigint, created_at timestamp with time zone, updated_at timestamp with time zone, expires_at timestamp with time zone)
--   refuse_adopted(task holdfast.tasks) RETURNS void
--   release_task(in_tenant text, in_id text, in_fence bigint, in_note text) RETURNS SETOF holdfast.task_records
--   release_writer(the_writer text) RETURNS void
--   remove_events(the_tenant text, the_session text, the_agent text, the_run text, the_types text[], after_epoch integer, after_seq bigint, until_epoch integer, until_seq bigint) RETURNS TABLE(id text, epoch integer, seq bigint)
--   renew_items(in_tenant text, in_owner text, in_namespaces text[], in_keys text[]) RETURNS TABLE(at integer, value text, version bigint, created_at timestamp with time zone, updated_at timestamp with time zone, expires_at timestamp with time zone, subject text)
--   replace_data_key(the_tenant text, the_number bigint, the_subject text, the_kek text, the_wrapped bytea, was bigint) RETURNS boolean
--   replace_messages(the_tenant text, the_session text, the_agent text, after_seq bigint, expected_seq bigint, the_ids text[], the_run text, the_times timestamp with time zone[], the_bodies text[], the_filterables text[]) RETURNS TABLE(id text, epoch integer, seq bigint)
--   replay_letter(the_tenant text, the_letter text, the_session text, the_epoch integer, the_seq bigint, the_agent text, the_type text, the_id text, the_run text, the_time timestamp with time zone, the_body text) RETURNS TABLE(epoch integer, seq bigint)
--   replayed_fact(the_tenant text, the_scope bigint, the_key text, the_fingerprint text, moment timestamp with time zone) RETURNS text
--   report_of_task(task holdfast.tasks, in_kinds text[], in_states text[], in_notes text[], in_ats timestamp with time zone[], in_metadatas text[], in_message_ids text[], in_message_ats timestamp with time zone[], in_bodies text[], in_digests text[], in_artifact_ids text[], in_appends boolean[], in_lasts boolean[]) RETURNS bigint
--   request_of_task(task holdfast.tasks, in_request text, in_now timestamp with time zone, in_note text) RETURNS void
--   request_of_tasks(in_tenant text, in_ids text[], in_what text, in_note text, in_new_ids text[], in_message_ids text[]) RETURNS TABLE(out_id text, out_new_id text, out_worker text)
--   respond_to_task(in_tenant text, in_id text, in_owner text, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_result text) RETURNS SETOF holdfast.task_records
--   resting_messages(in_tenant text, in_agents text[], in_limit bigint, in_bytes bigint) RETURNS TABLE(id text, agent text, owner text, context_id text, version bigint, message_id text, written_at timestamp with time zone, seq bigint, body text)
--   restore_task_chunks(in_tenant text, in_id text, in_fence bigint, in_step_kind text, in_step_name text, in_step_occurrence bigint) RETURNS SETOF holdfast.task_events
--   resume_task(in_tenant text, in_id text, in_owner text, in_note text) RETURNS SETOF holdfast.task_records
--   retain_sessions(the_tenant text, before timestamp with time zone, after_tenant text, after_id text, at_most integer, only_count boolean, OUT gone bigint, OUT next_tenant text, OUT next_id text) RETURNS record
--   retain_tasks(the_tenant text, before timestamp with time zone, at_most integer, only_count boolean) RETURNS bigint
--   retire_facts(the_tenant text, the_scope bigint, the_numbers bigint[]) RETURNS void
--   retry_card(in_tenant text, in_board_id text, in_id text, in_final text[]) RETURNS TABLE(was text, had bigint, id text, title text, status text, "position" bigint, retry_count bigint, note text, version bigint, updated_at timestamp with time zone)
--   retry_refused(the_tenant text) RETURNS bigint
--   ring(in_topic text) RETURNS void
--   rotate_api_key(in_tenant text, in_id text, in_digest text, in_new_id text, in_grace_seconds double precision) RETURNS SETOF holdfast.api_keys
--   row_postings(the_first integer, the_postings bigint[], the_packed integer[]) RETURNS TABLE(number integer, times double precision, length double precision)
--   row_without(the_first integer, the_postings bigint[], the_packed integer[], the_words text, gone integer[], OUT postings bigint[], OUT packed integer[], OUT words text) RETURNS record
--   run_schedule(in_tenant text, in_owner text, in_id text, in_uid text, in_version bigint, in_until timestamp with time zone, in_next_at timestamp with time zone, in_last_run_at timestamp with time zone, in_task_ids text[], in_new_context_ids text[], in_metadatas text[], in_submit_keys text[], in_digests text[], in_message_ids text[], in_message_at timestamp with time zone, in_message_digest text) RETURNS SETOF holdfast.task_records
--   save_fact(the_tenant text, the_namespace text, the_agent text, the_id text, the_content text, the_metadata text, the_topic text, the_confidence double precision, the_source text, the_entities text[], the_microseconds bigint, the_supersedes text, the_key text, the_fingerprint text, the_language text, the_length integer, the_lexemes text[], the_times integer[]) RETURNS text
--   save_fact_about(the_tenant text, the_namespace text, the_agent text, the_id text, the_content text, the_metadata text, the_topic text, the_confidence double precision, the_source text, the_entities text[], the_microseconds bigint, the_supersedes text, the_key text, the_fingerprint text, the_language text, the_length integer, the_lexemes text[], the_times integer[], the_subject text) RETURNS text
--   say_in_task(in_tenant text, in_task_id text, in_seq bigint, in_context_key bigint, in_fence bigint, in_actor text, in_now timestamp with time zone, in_id text, in_at timestamp with time zone, in_body text, in_digest text) RETURNS bigint
--   search_events(the_tenant text, the_agent text, the_beginning text, the_other text, most_agents integer, the_lexemes text[], the_names text[], the_vector real[], the_model text, the_limit bigint, the_session text, the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, the_owner text, the_path jsonpath, the_values jsonb, k1 double precision, b double precision, body_bytes integer, index_limit bigint, OUT searched text[], OUT queued text[], OUT waiting bigint, OUT indexing boolean, OUT may_index boolean, OUT model text, OUT unembedded boolean, OUT speakers text[], OUT word_seconds double precision, OUT near_seconds double precision, OUT lexicals double precision[], OUT semantics double precision[], OUT matched text[], OUT asks boolean[], OUT borrows boolean[], OUT spoke text[], OUT agents text[], OUT sessions text[], OUT types text[], OUT bodies text[], OUT ids text[], OUT runs text[], OUT times timestamp with time zone[], OUT epochs integer[], OUT seqs bigint[]) RETURNS record
--   search_words(the_tenant text, the_agent text, the_lexemes text[], the_limit bigint, the_session text, the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, k1 double precision, b double precision) RETURNS TABLE(session_key bigint, epoch integer, seq bigint, score double precision)
--   seconds_after(the_time timestamp with time zone, seconds double precision) RETURNS timestamp with time zone
--   send_to_task(in_tenant text, in_id text, in_owner text, in_message_id text, in_topic text, in_body text, in_digest text, in_limit bigint) RETURNS void
--   sessions_aside(at_most bigint) RETURNS TABLE(tenant text, session text)
--   sessions_overtaken(at_most bigint) RETURNS TABLE(tenant text, session text, epoch integer)
--   sessions_unassigned(at_most bigint) RETURNS TABLE(tenant text, session text)
--   sessions_unsettled(the_writer text) RETURNS TABLE(tenant text, session text)
--   settle_task(task holdfast.tasks, in_wanted text, in_note text, in_event text, OUT reached text, OUT why text) RETURNS record
--   shards_of_nodes() RETURNS TABLE(node text, takes_shards boolean, shards bigint)
--   skip_empty_moves() RETURNS void
--   store_embedded_events(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[], the_numbers real[], the_dimension integer) RETURNS TABLE(place integer, epoch integer, seq bigint, first timestamp with time zone)
--   store_event(the_tenant text, the_session text, the_agent text, the_type text, the_id text, the_run text, the_time timestamp with time zone, the_body text, the_filterable text) RETURNS TABLE(place integer, epoch integer, seq bigint, first timestamp with time zone)
--   store_events(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[]) RETURNS TABLE(place integer, epoch integer, seq bigint, first timestamp with time zone)
--   store_events_and_kept_states(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[], the_numbers real[], the_dimension integer, patched text[], the_states text[], the_dropped text[], the_ttls double precision[], the_versions bigint[], the_kept integer[]) RETURNS TABLE(place integer, epoch integer, seq bigint, first timestamp with time zone)
--   store_events_and_states(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[], the_numbers real[], the_dimension integer, patched text[], the_states text[], the_dropped text[], the_ttls double precision[], the_versions bigint[]) RETURNS TABLE(place integer, epoch integer, seq bigint, first timestamp with time zone)
--   store_first_events(the_tenant text, the_sessions text[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[]) RETURNS boolean
--   store_schedule(in_tenant text, in_owner text, in_id text, in_uid text, in_cron text, in_timezone text, in_agent text, in_message text, in_context_id text, in_metadata text, in_missed text, in_missed_limit bigint, in_grace_seconds double precision, in_max_attempts bigint, in_digest text, in_replace boolean, in_most bigint) RETURNS SETOF holdfast.schedules
--   store_session_events(the_tenant text, the_session text, the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[]) RETURNS TABLE(place integer, epoch integer, seq bigint, first timestamp with time zone)
--   store_task_step(in_tenant text, in_id text, in_fence bigint, in_kind text, in_name text, in_occurrence bigint, in_body text, in_digest text, in_message_id text, in_seconds double precision, OUT out_at timestamp with time zone, OUT out_digest text, OUT out_fence bigint, OUT out_chunks bigint, OUT out_body text, OUT out_started_at timestamp with time zone) RETURNS record
--   store_turns(the_tenant text, the_sessions text[], the_epochs integer[], the_seqs bigint[], the_agents text[], the_types text[], the_ids text[], the_runs text[], the_times timestamp with time zone[], the_bodies text[], the_filterables text[], the_awaited boolean[]) RETURNS TABLE(place integer, outcome text, ahead integer)
--   stored_id(in_owner text, in_id text) RETURNS text
--   submit_child_task(in_tenant text, in_parent_id text, in_fence bigint, in_step_kind text, in_step_name text, in_step_occurrence bigint, in_step_body text, in_step_digest text, in_id text, in_context_id text, in_new_context_id text, in_agent text, in_metadata text, in_max_attempts bigint, in_run_after timestamp with time zone, in_run_after_seconds double precision, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text) RETURNS SETOF holdfast.linked_task_records
--   submit_task(in_tenant text, in_id text, in_owner text, in_context_id text, in_new_context_id text, in_agent text, in_metadata text, in_max_attempts bigint, in_submit_key text, in_digest text, in_retry_of text, in_run_after timestamp with time zone, in_run_after_seconds double precision, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_push_ids text[], in_push_urls text[], in_push_tokens text[], in_push_auths text[]) RETURNS SETOF holdfast.task_records
--   supersede_fact(the_tenant text, the_scope bigint, the_supersedes text, the_id text, moment timestamp with time zone) RETURNS holdfast.facts
--   survey_work(at_most bigint, these text[]) RETURNS TABLE(kind text, tenant text, seconds double precision)
--   take_back(session holdfast.sessions) RETURNS holdfast.sessions
--   take_places(in_tenant text, in_places tid[], in_busy bigint[], in_worker text, in_now timestamp with time zone, in_lease_seconds double precision, in_serial boolean, in_versions jsonb, in_app_version text) RETURNS SETOF holdfast.tasks
--   take_tasks(in_tenant text, in_worker text, in_agents text[], in_limit bigint, in_lease_seconds double precision, in_serial boolean, in_history bigint, in_limits jsonb) RETURNS SETOF holdfast.claimed_task
--   take_unembedded(the_tenant text, the_limit bigint, the_seconds double precision) RETURNS TABLE(agent text, session_key bigint, epoch integer, first_seq bigint, last_seq bigint, seq bigint, type text, body text)
--   task_artifact_bytes(in_tenant text, in_task_id text) RETURNS bigint
--   task_artifacts(in_tenant text, in_task_id text, in_artifact_id text) RETURNS TABLE(chunk_artifacts text[], chunk_times timestamp with time zone[], chunk_bodies text[], chunk_appends boolean[], chunk_lasts boolean[], chunk_names text[], chunk_metadata text[])
--   task_artifacts_at(in_tenant text, in_task_id text, in_seq bigint) RETURNS TABLE(chunk_artifacts text[], chunk_times timestamp with time zone[], chunk_bodies text[], chunk_appends boolean[], chunk_lasts boolean[], chunk_names text[], chunk_metadata text[])
--   task_artifacts_within(in_tenant text, in_task_id text, in_bytes bigint) RETURNS TABLE(bytes bigint, dropped boolean)
--   task_change_at(in_tenant text, in_id text, in_version bigint, in_state text, in_seq bigint) RETURNS holdfast.task_events
--   task_messages(in_tenant text, in_task_id text, in_last bigint) RETURNS TABLE(message_ids text[], message_times timestamp with time zone[], message_seqs bigint[], message_bodies text[])
--   task_messages_at(in_tenant text, in_task_id text, in_last bigint, in_seq bigint) RETURNS TABLE(message_ids text[], message_times timestamp with time zone[], message_seqs bigint[], message_bodies text[])
--   task_messages_within(in_tenant text, in_task_id text, in_last bigint, in_bytes bigint) RETURNS TABLE(message_ids text[], message_times timestamp with time zone[], message_seqs bigint[], message_bodies text[], messages_cut boolean)
--   task_moment(in_at timestamp with time zone, in_seconds double precision, in_now timestamp with time zone) RETURNS timestamp with time zone
--   task_move_at(task holdfast.tasks, in_seq bigint) RETURNS holdfast.task_events
--   task_note(in_reason text, in_note text) RETURNS text
--   task_page_bytes(in_tenant text, in_task_id text, in_last bigint, in_artifacts boolean) RETURNS bigint
--   task_request_between(in_tenant text, in_id text, in_after bigint, in_until bigint, in_requests text[]) RETURNS text
--   task_says(in_tenant text, in_id text, in_text text) RETURNS boolean
--   task_step_key(in_task_id text, in_kind text, in_name text, in_occurrence bigint) RETURNS text
--   tell_of_task(in_tenant text, in_id text, in_has_push boolean, in_followed_until timestamp with time zone, in_now timestamp with time zone, VARIADIC in_announced bigint[]) RETURNS void
--   tenants_at_work(at_most bigint) RETURNS TABLE(tenant text)
--   tenants_due(at_most bigint) RETURNS TABLE(tenant text)
--   tenants_scheduled(at_most bigint, these text[]) RETURNS TABLE(tenant text, seconds double precision)
--   tenants_to_clean(at_most bigint) RETURNS TABLE(tenant text)
--   tenants_to_embed(the_model text) RETURNS TABLE(tenant text)
--   tenants_to_rewrap(the_kek text, the_last text, at_most bigint) RETURNS TABLE(tenant text)
--   tenants_with_copies(at_most bigint) RETURNS TABLE(tenant text)
--   tenants_with_news(at_most bigint) RETURNS TABLE(tenant text)
--   transition_task(in_tenant text, in_id text, in_fence bigint, in_to text, in_note text, in_run_after timestamp with time zone, in_run_after_seconds double precision, in_progress boolean, in_message_id text, in_message_at timestamp with time zone, in_message_body text, in_message_digest text, in_ask_kind text, in_ask_name text, in_ask_occurrence bigint) RETURNS SETOF holdfast.task_records
--   uncopy_task() RETURNS trigger
--   unembedded_in(the_tenant text, the_agents text[], the_keys bigint[], the_epochs integer[], the_starts bigint[], the_ends bigint[], the_limit bigint) RETURNS TABLE(agent text, session_key bigint, epoch integer, first_seq bigint, last_seq bigint, seq bigint, type text, body text)
--   unindex_events(agent holdfast.event_agents, the_session bigint, the_epochs integer[], the_seqs bigint[]) RETURNS void
--   unindex_session(the_tenant text, the_session bigint, the_agents text[], the_epochs integer[], the_seqs bigint[]) RETURNS void
--   update_fact(the_tenant text, the_namespace text, the_agent text, the_id text, the_content text, the_metadata text, the_topic text, the_confidence double precision, the_source text, the_entities text[], the_microseconds bigint, the_supersedes text, the_key text, the_fingerprint text, the_language text, the_length integer, the_lexemes text[], the_times integer[]) RETURNS text
--   upsert_push_config(in_tenant text, in_task_id text, in_owner text, in_id text, in_url text, in_token text, in_authentication text) RETURNS void
--   use_task_context(in_tenant text, in_owner text, in_id text, in_now timestamp with time zone, OUT key bigint, OUT made boolean) RETURNS record
--   waiting_events(the_tenant text, the_agents text[], the_limit bigint, look_back bigint) RETURNS TABLE(agent text, version bigint, session_key bigint, epoch integer, first_seq bigint, last_seq bigint, ahead boolean, numbered boolean, at_epoch integer, seq bigint, type text, occurred_at timestamp with time zone, body text, embedded boolean)
--   wake_parent_task() RETURNS trigger
--   walk(the_tenant text, start text, depth bigint, the_types text[], along boolean, against boolean, most bigint) RETURNS text[]
--   warm_session(the_tenant text, the_session text, the_agent text, known_epoch integer, known_seq bigint, known_heat bigint) RETURNS TABLE(epoch integer, seq bigint, reserved bigint, heat bigint)
--   watch_task(in_tenant text, in_id text, in_owner text) RETURNS TABLE(out_state text, out_version bigint)
--   with_writer(the_writers text[], the_writer text) RETURNS text[]
--   word_candidates(the_tenant text, the_key integer, levels integer[], average double precision, lexemes text[], holding bigint[], weights double precision[], gains double precision[], the_limit bigint, in_session integer[], the_types text[], the_since timestamp with time zone, the_until timestamp with time zone, the_owner text, the_path jsonpath, the_values jsonb, k1 double precision, b double precision) RETURNS integer[]
--   word_hash(the_lexeme text) RETURNS integer
--   word_labels(the_lexeme text, the_levels integer) RETURNS text[]
--   word_rows(the_key integer, the_levels integer, the_lexeme text) RETURNS TABLE(first integer, last integer, most smallint, shortest smallint, holding integer, postings bigint[], wide bigint[], packed integer[], number_bits integer, times_bits integer, times_mask bigint, length_mask bigint, grouped boolean)
--   word_slice(the_lexeme text, the_words text) RETURNS integer
--   write_documents(the_tenant text, the_collection text, replacing boolean, the_ids text[], the_contents text[], the_metadata text[], the_filterables text[], the_dimensions integer[], the_numbers real[]) RETURNS void
--   write_item(in_tenant text, in_space bigint, in_labels text[], in_key text, in_value text, in_filterable jsonb, in_vectors vector[], in_ttl_seconds double precision, in_expected bigint, in_subject text, in_several boolean) RETURNS bigint
--   write_state_at_version(in_tenant text, in_session_id text, in_state jsonb, in_ttl_seconds double precision, in_dropped text[], in_replace boolean, in_expected bigint) RETURNS void
--   write_task_chunk(in_tenant text, in_task_id text, in_seq bigint, in_fence bigint, in_now timestamp with time zone, in_artifact_id text, in_body text, in_append boolean, in_last boolean, in_name text, in_metadata text, in_step_kind text, in_step_name text, in_step_occurrence bigint, in_strict boolean) RETURNS boolean
