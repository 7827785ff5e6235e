-- Whom a document is about, if that is not its owner; empty for the owner.
ALTER TABLE holdfast.documents ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';
