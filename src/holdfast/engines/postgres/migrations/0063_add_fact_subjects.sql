-- Whom a fact is about, if that is not its owner; empty for the owner.
ALTER TABLE holdfast.facts ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';
