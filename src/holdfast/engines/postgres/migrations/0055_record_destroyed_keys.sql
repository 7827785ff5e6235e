-- The numbers of the data keys that an erasure destroyed.
ALTER TABLE holdfast.erasures ADD COLUMN data_keys bigint[] NOT NULL DEFAULT '{}';
