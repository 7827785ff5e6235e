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
