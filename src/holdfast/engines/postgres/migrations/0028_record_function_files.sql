-- Functions are files of their own, applied again when they change: which version of each is here.
CREATE TABLE holdfast.function_files (
    name text COLLATE "C" PRIMARY KEY,
    version int NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
