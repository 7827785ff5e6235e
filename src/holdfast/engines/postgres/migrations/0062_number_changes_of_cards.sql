-- A version and a time for each card, so that two people can change one board.

ALTER TABLE holdfast.cards
    ADD COLUMN version bigint NOT NULL DEFAULT 1,
    ADD COLUMN updated_at timestamptz;
