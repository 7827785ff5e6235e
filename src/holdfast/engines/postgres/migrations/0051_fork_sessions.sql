-- What a session was forked from, and up to which number.
ALTER TABLE holdfast.sessions ADD COLUMN parent text COLLATE "C", ADD COLUMN parent_at bigint;
