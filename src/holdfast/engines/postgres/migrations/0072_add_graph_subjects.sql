-- Whom an entity or a relationship is about, if that is not its owner; empty for the owner.
ALTER TABLE holdfast.entities ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE holdfast.relationships ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';
