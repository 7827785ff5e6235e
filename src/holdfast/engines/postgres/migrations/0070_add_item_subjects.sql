-- Whom an item is about, if that is not its owner; empty for the owner.
ALTER TABLE holdfast.items ADD COLUMN subject text COLLATE "C" NOT NULL DEFAULT '';
