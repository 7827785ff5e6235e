-- version: 2
-- Push configs, and news on their way to them.

-- Stores a push config of a task under its id.
CREATE OR REPLACE FUNCTION holdfast.upsert_push_config(
    in_tenant text, in_task_id text, in_owner text,
    in_id text, in_url text, in_token text, in_authentication text
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    task holdfast.tasks := holdfast.lock_task(in_tenant, in_task_id, in_owner);
BEGIN
    INSERT INTO holdfast.push_configs (tenant, task_id, id, url, token, authentication)
    VALUES (in_tenant, task.id, in_id, in_url, in_token, in_authentication)
    ON CONFLICT (tenant, task_id, id) DO UPDATE SET
        url = excluded.url, token = excluded.token, authentication = excluded.authentication;
    IF NOT task.has_push THEN
        UPDATE holdfast.tasks t SET has_push = true WHERE t.tenant = in_tenant AND t.id = task.id;
    END IF;
END
$$;

-- Removes a push config with all that is on its way to it; whether it was there.
CREATE OR REPLACE FUNCTION holdfast.delete_push_config(
    in_tenant text, in_task_id text, in_owner text, in_id text
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM holdfast.tasks t
    WHERE t.tenant = in_tenant AND t.id = in_task_id AND (in_owner IS NULL OR t.owner = in_owner)
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM holdfast.push_configs p
    WHERE p.tenant = in_tenant AND p.task_id = in_task_id AND p.id = in_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM holdfast.outbox o
    WHERE o.tenant = in_tenant AND o.task_id = in_task_id AND o.config_id = in_id;
    UPDATE holdfast.tasks t SET has_push = EXISTS (
        SELECT FROM holdfast.push_configs p WHERE p.tenant = in_tenant AND p.task_id = in_task_id)
    WHERE t.tenant = in_tenant AND t.id = in_task_id;
    RETURN true;
END
$$;

-- Takes the next entry of push configs for which one is due, the oldest first.
CREATE OR REPLACE FUNCTION holdfast.claim_outbox(
    in_tenant text, in_limit bigint, in_lease_seconds double precision
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
        SELECT p.task_id, p.id, p.next_seq FROM holdfast.push_configs p
        WHERE p.tenant = in_tenant AND p.next_seq IS NOT NULL AND p.next_due_at <= v_now
        ORDER BY p.next_due_at, p.next_number LIMIT in_limit
        FOR NO KEY UPDATE SKIP LOCKED
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
        AS l (task_id, config_id, seq, place)
    JOIN holdfast.outbox_entries e
        ON e.tenant = in_tenant AND e.task_id = l.task_id AND e.config_id = l.config_id
        AND e.seq = l.seq
    ORDER BY l.place;
END
$$;

-- The push config of an entry with its row locked, and its task's; whether it is there.
CREATE OR REPLACE FUNCTION holdfast.lock_outbox(in_tenant text, in_task_id text, in_config_id text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    -- While the task is held, nothing is added that could be missed by whoever looks for the next.
    PERFORM FROM holdfast.tasks t WHERE t.tenant = in_tenant AND t.id = in_task_id
    FOR NO KEY UPDATE;
    PERFORM FROM holdfast.push_configs p
    WHERE p.tenant = in_tenant AND p.task_id = in_task_id AND p.id = in_config_id
    FOR NO KEY UPDATE;
    RETURN FOUND;
END
$$;

-- Finds out which entry of a push config is next.
CREATE OR REPLACE FUNCTION holdfast.advance_outbox(in_tenant text, in_task_id text, in_config_id text)
RETURNS void
LANGUAGE sql
AS $$
    UPDATE holdfast.push_configs p SET (next_seq, next_due_at, next_number) = (
        SELECT o.seq, o.due_at, o.number FROM holdfast.outbox o
        WHERE o.tenant = in_tenant AND o.task_id = p.task_id AND o.config_id = p.id AND NOT o.dead
        ORDER BY o.seq LIMIT 1)
    WHERE p.tenant = in_tenant AND p.task_id = in_task_id AND p.id = in_config_id
$$;

-- Removes an entry that has arrived; whether it was there.
CREATE OR REPLACE FUNCTION holdfast.mark_delivered(
    in_tenant text, in_task_id text, in_config_id text, in_seq bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT holdfast.lock_outbox(in_tenant, in_task_id, in_config_id) THEN
        RETURN false;
    END IF;
    DELETE FROM holdfast.outbox o
    WHERE o.tenant = in_tenant AND o.task_id = in_task_id AND o.config_id = in_config_id
        AND o.seq = in_seq;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM holdfast.advance_outbox(in_tenant, in_task_id, in_config_id);
    RETURN true;
END
$$;

-- Lets an entry wait, or gives it up; whether it was there and still its claimer's.
CREATE OR REPLACE FUNCTION holdfast.mark_failed(
    in_tenant text, in_task_id text, in_config_id text, in_seq bigint, in_attempts bigint,
    in_error text, in_max_attempts bigint, in_delay_seconds double precision
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT holdfast.lock_outbox(in_tenant, in_task_id, in_config_id) THEN
        RETURN false;
    END IF;
    UPDATE holdfast.outbox o SET
        last_error = in_error, dead = in_attempts >= in_max_attempts,
        due_at = holdfast.now() + make_interval(secs => in_delay_seconds)
    WHERE o.tenant = in_tenant AND o.task_id = in_task_id AND o.config_id = in_config_id
        AND o.seq = in_seq AND o.attempts = in_attempts AND NOT o.dead;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM holdfast.advance_outbox(in_tenant, in_task_id, in_config_id);
    RETURN true;
END
$$;

-- A new push config gets the news of its task's owner.
CREATE OR REPLACE FUNCTION holdfast.own_push_config() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.owner INTO STRICT NEW.owner FROM holdfast.tasks t
    WHERE t.tenant = NEW.tenant AND t.id = NEW.task_id;
    RETURN NEW;
END
$$;

-- Stores a push config of a task under its id, unless the task has so many others; whether it did.
CREATE OR REPLACE FUNCTION holdfast.put_push_config(
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
CREATE OR REPLACE FUNCTION holdfast.claim_outbox_fairly(
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
