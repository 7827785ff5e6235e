-- API keys of services: only the SHA-256 of a key is stored, which carries its tenant in its text.

-- name is the codec's JSON text, so that any text fits.
CREATE TABLE holdfast.api_keys (
    tenant text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (tenant, digest),
    UNIQUE (tenant, id)
);
