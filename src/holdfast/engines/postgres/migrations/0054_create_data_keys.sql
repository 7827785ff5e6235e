-- The wrapped data keys of sealed mode: one for each tenant and subject.
CREATE TABLE holdfast.data_keys (
    tenant text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    subject text COLLATE "C" NOT NULL,
    kek text COLLATE "C" NOT NULL,
    wrapped bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, number),
    UNIQUE (tenant, subject)
);
