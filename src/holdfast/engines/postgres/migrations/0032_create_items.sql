-- JSON objects under a namespace and a key. Nobody's have the owner ''.

-- One source for all versions, so that none is ever used again.
CREATE SEQUENCE holdfast.item_versions;

-- Paths of labels. A row without items is left by its last item, until maintenance deletes it.
CREATE TABLE holdfast.item_namespaces (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    path text[] COLLATE "C" NOT NULL,
    -- Items name it by this, since a path and a key together do not fit an index entry.
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant, owner, path),
    UNIQUE (tenant, number)
);

-- The value is the codec's JSON text, kept exactly; filterable is the same as jsonb, escaped.
CREATE TABLE holdfast.items (
    tenant text COLLATE "C" NOT NULL,
    namespace bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    ttl_seconds double precision,
    expires_at timestamptz,
    vectors public.vector[] NOT NULL,
    value text NOT NULL,
    filterable jsonb NOT NULL,
    PRIMARY KEY (tenant, namespace, key),
    FOREIGN KEY (tenant, namespace) REFERENCES holdfast.item_namespaces (tenant, number)
) WITH (fillfactor = 85);
-- A search by vector reads all vectors: keep them in the row as long as they fit.
ALTER TABLE holdfast.items ALTER COLUMN vectors SET STORAGE MAIN;
CREATE INDEX items_expiry ON holdfast.items (expires_at) WHERE expires_at IS NOT NULL;
