-- Erasures. They stay when everything else of a tenant is erased.
CREATE TABLE holdfast.erasures (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    -- Whose data; forgotten when it has finished.
    scope_id text COLLATE "C",
    -- Records by store when it began, as JSON.
    counts text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    -- Its place in the chain of receipts.
    number bigint,
    receipt text,
    sha256 text COLLATE "C",
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX erasures_open ON holdfast.erasures (tenant, kind, scope_id)
    WHERE finished_at IS NULL;
CREATE UNIQUE INDEX erasures_by_number ON holdfast.erasures (tenant, number)
    WHERE number IS NOT NULL;
