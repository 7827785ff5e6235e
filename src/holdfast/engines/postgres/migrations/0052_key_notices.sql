-- The key of the digests that notices carry. Every role may LISTEN, but who may not read this key
-- cannot tell what a notice is about.
CREATE TABLE holdfast.notice_key (
    id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    key bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
);
INSERT INTO holdfast.notice_key DEFAULT VALUES;
