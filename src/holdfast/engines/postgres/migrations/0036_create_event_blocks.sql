-- The index of words in blocks: up to 256 events of a lexeme in one row. An agent's events have numbers,
-- in the order in which they were indexed.

-- version changes with every change of the agent's index: what was prepared for an earlier one is not
-- written. small counts the batches since the blocks were merged. near_dimension: that of the index of its
-- vectors, 0 if there is none.
CREATE TABLE holdfast.event_agents (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key int NOT NULL GENERATED ALWAYS AS IDENTITY,
    documents bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    newest int NOT NULL DEFAULT 0,
    speakers int NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    small int NOT NULL DEFAULT 0,
    near_dimension int NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, agent)
) WITH (fillfactor = 70);

-- Which event has which number. said: it is a message with text. borrows: it is indexed by the words of
-- a question too. The keys of agents and sessions are unique over all tenants.
CREATE TABLE holdfast.event_numbers (
    agent_key int NOT NULL,
    number int NOT NULL,
    session_key bigint NOT NULL,
    seq bigint NOT NULL,
    epoch int NOT NULL,
    length int NOT NULL,
    speaker int NOT NULL,
    said boolean NOT NULL,
    asks boolean NOT NULL,
    borrows boolean NOT NULL,
    PRIMARY KEY (agent_key, number)
);
CREATE UNIQUE INDEX event_numbers_of_session ON holdfast.event_numbers (session_key, epoch, seq);

-- A posting is (number - first) << 42 | times << 21 | length, ascending. Blocks of a lexeme do not overlap:
-- all numbers are from first to last. most is not less than any times, and shortest not more than any
-- length.
CREATE TABLE holdfast.event_blocks (
    agent_key int NOT NULL,
    first int NOT NULL,
    last int NOT NULL,
    most smallint NOT NULL,
    shortest smallint NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    postings bigint[] NOT NULL,
    PRIMARY KEY (agent_key, lexeme, first)
);
ALTER TABLE holdfast.event_blocks ALTER COLUMN postings SET STORAGE PLAIN;

-- The names under which messages of an agent were said.
CREATE TABLE holdfast.event_speakers (
    agent_key int NOT NULL,
    name text COLLATE "C" NOT NULL,
    number int NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (agent_key, name)
) WITH (fillfactor = 70);

-- Whether the vector of an event depends on what was said before it.
ALTER TABLE holdfast.event_models ADD COLUMN reads_context boolean NOT NULL DEFAULT false;

-- Nobody indexes into the tables of earlier versions from here on. A process of an earlier version that
-- reads them gets the error of a table that is not there, which it reports as SchemaError, and one that
-- writes to them is refused.
LOCK TABLE holdfast.event_totals IN ACCESS EXCLUSIVE MODE;
DROP TABLE holdfast.event_postings, holdfast.indexed_events, holdfast.event_lexemes,
    holdfast.event_totals;

CREATE FUNCTION holdfast.index_replaced() RETURNS SETOF text
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the index of words has another form now: upgrade holdfast'
        USING ERRCODE = 'undefined_table';
END
$$;
CREATE VIEW holdfast.indexed_events AS
SELECT n COLLATE "C" AS tenant, n::bigint AS session_key, n::int AS epoch, n::bigint AS seq,
       n::int AS length, n::text[] COLLATE "C" AS lexemes
FROM holdfast.index_replaced() AS n;
CREATE VIEW holdfast.event_postings AS
SELECT n COLLATE "C" AS tenant, n COLLATE "C" AS agent, n COLLATE "C" AS lexeme,
       n::bigint AS session_key, n::int AS epoch, n::bigint AS seq, n::int AS times, n::int AS length
FROM holdfast.index_replaced() AS n;
CREATE VIEW holdfast.event_lexemes AS
SELECT n COLLATE "C" AS tenant, n COLLATE "C" AS agent, n COLLATE "C" AS lexeme,
       n::bigint AS documents, n::int AS most
FROM holdfast.index_replaced() AS n;
CREATE VIEW holdfast.event_totals AS
SELECT n COLLATE "C" AS tenant, n COLLATE "C" AS agent, n::bigint AS documents, n::bigint AS length
FROM holdfast.index_replaced() AS n;
