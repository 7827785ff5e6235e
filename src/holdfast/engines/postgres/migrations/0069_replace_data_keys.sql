-- A subject has one current data key, and those that a rotation replaced: what they encrypted needs them.
-- first_number: the subject's first key, in the rows of later ones.
ALTER TABLE holdfast.data_keys
    ADD COLUMN replaced boolean NOT NULL DEFAULT false,
    ADD COLUMN first_number bigint;
CREATE UNIQUE INDEX data_keys_current ON holdfast.data_keys (tenant, subject) WHERE NOT replaced;
CREATE INDEX data_keys_by_subject ON holdfast.data_keys (tenant, subject);
ALTER TABLE holdfast.data_keys DROP CONSTRAINT data_keys_tenant_subject_key;
