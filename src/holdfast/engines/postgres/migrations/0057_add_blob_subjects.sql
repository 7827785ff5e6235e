-- Whom the content of a blob is about or from; empty for nobody.
ALTER TABLE holdfast.blob_index ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';
