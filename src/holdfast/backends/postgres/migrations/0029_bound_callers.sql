-- What one caller can take: bytes of an answer, push configs of a task, deliveries at a time.

-- Tasks are read within so many bytes. The length of a text is known without reading the text, so that
-- what does not fit stays where it is.

-- How many bytes the artifacts of a task take, as they are now.
CREATE FUNCTION holdfast.task_artifact_bytes(in_tenant text, in_task_id text) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(sum(octet_length(e.body) + octet_length(e.metadata)), 0)::bigint
    FROM holdfast.task_artifacts a
    JOIN holdfast.task_events e
        ON e.tenant = a.tenant AND e.task_id = a.task_id AND e.kind = 'artifact'
        AND e.artifact_id = a.id AND e.seq >= a.anew
    WHERE a.tenant = in_tenant AND a.task_id = in_task_id
$$;

-- How many bytes of a page a task takes, with its last messages and, if wanted, its artifacts.
CREATE FUNCTION holdfast.task_page_bytes(
    in_tenant text, in_task_id text, in_last bigint, in_artifacts boolean
) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT octet_length(t.metadata)
        + coalesce((
            SELECT octet_length(e.body) FROM holdfast.task_events e
            WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.seq = t.status_seq LIMIT 1), 0)
        + coalesce((
            SELECT sum(octet_length(l.body)) FROM (
                SELECT e.body FROM holdfast.task_events e
                WHERE e.tenant = t.tenant AND e.task_id = t.id AND e.kind = 'message'
                ORDER BY e.seq DESC LIMIT in_last
            ) l), 0)::bigint
        + CASE WHEN in_artifacts THEN holdfast.task_artifact_bytes(t.tenant, t.id) ELSE 0 END
    FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = in_task_id
$$;

-- The last messages of a task that fit, as task_messages has them, and whether some do not; the
-- newest always fits.
CREATE FUNCTION holdfast.task_messages_within(
    in_tenant text, in_task_id text, in_last bigint, in_bytes bigint
) RETURNS TABLE (message_ids text[], message_times timestamptz[], message_seqs bigint[],
                 message_bodies text[], messages_cut boolean)
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(m.message_id ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.written_at ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.seq ORDER BY m.seq) FILTER (WHERE m.fits),
           array_agg(m.body ORDER BY m.seq) FILTER (WHERE m.fits),
           coalesce(bool_or(NOT m.fits), false)
    FROM (
        SELECT l.*, sum(octet_length(l.body)) OVER newer <= in_bytes
                   OR row_number() OVER newer = 1 AS fits
        FROM (
            SELECT e.message_id, e.written_at, e.seq, e.body
            FROM holdfast.task_events e
            WHERE e.tenant = in_tenant AND e.task_id = in_task_id AND e.kind = 'message'
            ORDER BY e.seq DESC LIMIT in_last
        ) l
        WINDOW newer AS (ORDER BY l.seq DESC)
    ) m
$$;

-- Whose news a push config gets, so that one owner's deliveries do not delay another's.
ALTER TABLE holdfast.push_configs ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
UPDATE holdfast.push_configs p SET owner = t.owner
FROM holdfast.tasks t WHERE t.tenant = p.tenant AND t.id = p.task_id AND t.owner <> '';
CREATE INDEX push_configs_due_by_owner
    ON holdfast.push_configs (tenant, owner, next_due_at, next_number) WHERE next_seq IS NOT NULL;

CREATE FUNCTION holdfast.own_push_config() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.owner INTO STRICT NEW.owner FROM holdfast.tasks t
    WHERE t.tenant = NEW.tenant AND t.id = NEW.task_id;
    RETURN NEW;
END
$$;
CREATE TRIGGER own_push_config BEFORE INSERT ON holdfast.push_configs
    FOR EACH ROW EXECUTE FUNCTION holdfast.own_push_config();

CREATE OR REPLACE VIEW holdfast.outbox_entries AS
SELECT o.config_id, o.due_at, o.attempts, o.last_error, o.dead, o.number AS place,
       p.url, p.token, p.authentication, e.*, p.owner
FROM holdfast.outbox o
JOIN holdfast.push_configs p
    ON p.tenant = o.tenant AND p.task_id = o.task_id AND p.id = o.config_id
JOIN holdfast.task_events e
    ON e.tenant = o.tenant AND e.task_id = o.task_id AND e.seq = o.seq;

-- Stores a push config of a task under its id, unless the task has so many others; whether it did.
CREATE FUNCTION holdfast.upsert_push_config(
    in_tenant text, in_task_id text, in_owner text,
    in_id text, in_url text, in_token text, in_authentication text, in_most bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    -- Nobody adds one while the task is held.
    PERFORM holdfast.lock_task(in_tenant, in_task_id, in_owner);
    IF (SELECT count(*) FROM holdfast.push_configs p
        WHERE p.tenant = in_tenant AND p.task_id = in_task_id AND p.id <> in_id) >= in_most THEN
        RETURN false;
    END IF;
    PERFORM holdfast.upsert_push_config(
        in_tenant, in_task_id, in_owner, in_id, in_url, in_token, in_authentication);
    RETURN true;
END
$$;

-- Takes the next entry of push configs for which one is due: of each owner at most so many, those
-- that are on their way counted, and first of the owners who have the fewest.
CREATE FUNCTION holdfast.claim_outbox_fairly(
    in_tenant text, in_limit bigint, in_lease_seconds double precision, in_per_owner bigint,
    in_busy_owners text[], in_busy_counts bigint[]
) RETURNS SETOF holdfast.outbox_entries
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
    free_at timestamptz := v_now + make_interval(secs => in_lease_seconds);
    of_tasks text[];
    of_configs text[];
    seqs bigint[];
BEGIN
    SELECT array_agg(l.task_id), array_agg(l.id), array_agg(l.next_seq)
    INTO of_tasks, of_configs, seqs
    FROM (
        WITH RECURSIVE owners AS (
            (SELECT p.owner FROM holdfast.push_configs p
             WHERE p.tenant = in_tenant AND p.next_seq IS NOT NULL
             ORDER BY p.owner LIMIT 1)
            UNION ALL
            SELECT n.owner FROM owners o CROSS JOIN LATERAL (
                SELECT p.owner FROM holdfast.push_configs p
                WHERE p.tenant = in_tenant AND p.next_seq IS NOT NULL AND p.owner > o.owner
                ORDER BY p.owner LIMIT 1
            ) n
        ), due AS MATERIALIZED (
            SELECT d.task_id, d.id, d.next_due_at, d.next_number,
                   coalesce(b.busy, 0) + row_number() OVER (
                       PARTITION BY o.owner ORDER BY d.next_due_at, d.next_number) AS turn
            FROM owners o
            LEFT JOIN unnest(in_busy_owners, in_busy_counts) AS b (owner, busy)
                ON b.owner = o.owner
            CROSS JOIN LATERAL (
                SELECT p.task_id, p.id, p.next_due_at, p.next_number
                FROM holdfast.push_configs p
                WHERE p.tenant = in_tenant AND p.owner = o.owner AND p.next_seq IS NOT NULL
                    AND p.next_due_at <= v_now
                ORDER BY p.next_due_at, p.next_number
                LIMIT greatest(least(in_limit, in_per_owner - coalesce(b.busy, 0)), 0)
            ) d
            ORDER BY turn, d.next_due_at, d.next_number LIMIT in_limit
        )
        SELECT p.task_id, p.id, p.next_seq FROM due d
        JOIN holdfast.push_configs p
            ON p.tenant = in_tenant AND p.task_id = d.task_id AND p.id = d.id
        -- Somebody else may have claimed it meanwhile.
        WHERE p.next_seq IS NOT NULL AND p.next_due_at <= v_now
        ORDER BY d.turn, d.next_due_at, d.next_number
        FOR NO KEY UPDATE OF p SKIP LOCKED
    ) l;
    UPDATE holdfast.outbox o SET attempts = o.attempts + 1, due_at = free_at
    FROM unnest(of_tasks, of_configs, seqs) AS l (task_id, config_id, seq)
    WHERE o.tenant = in_tenant AND o.task_id = l.task_id AND o.config_id = l.config_id
        AND o.seq = l.seq;
    UPDATE holdfast.push_configs p SET next_due_at = free_at
    FROM unnest(of_tasks, of_configs) AS l (task_id, config_id)
    WHERE p.tenant = in_tenant AND p.task_id = l.task_id AND p.id = l.config_id;
    RETURN QUERY
    SELECT e.* FROM unnest(of_tasks, of_configs, seqs) WITH ORDINALITY
        AS l (task_id, config_id, seq, turn)
    JOIN holdfast.outbox_entries e
        ON e.tenant = in_tenant AND e.task_id = l.task_id AND e.config_id = l.config_id
        AND e.seq = l.seq
    ORDER BY l.turn;
END
$$;
