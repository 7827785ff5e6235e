-- Imports of archives: which segments are loaded, so that an interrupted one continues.
CREATE TABLE holdfast.imports (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    segments text[] COLLATE "C" NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (tenant, id)
);
