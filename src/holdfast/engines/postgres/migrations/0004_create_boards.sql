-- To-do boards and their cards. Free text (label, title, note) is kept as JSON text.
CREATE TABLE holdfast.boards (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    agent_label text NOT NULL,
    parent_agent_id text COLLATE "C",
    max_retries bigint NOT NULL,
    created bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, conversation_id, agent_id)
);

CREATE TABLE holdfast.cards (
    tenant text COLLATE "C" NOT NULL,
    board_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    title text NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'planned',
    retry_count bigint NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '""',
    PRIMARY KEY (tenant, board_id, id),
    FOREIGN KEY (tenant, board_id) REFERENCES holdfast.boards (tenant, id) ON DELETE CASCADE
);

-- Makes a board with its cards; the board that the agent had in the conversation goes with its own.
CREATE FUNCTION holdfast.create_board(
    in_tenant text, in_id text, in_conversation_id text, in_agent_id text, in_agent_label text,
    in_parent_agent_id text, in_max_retries bigint, in_card_ids text[], in_titles text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    LOOP
        DELETE FROM holdfast.boards b
        WHERE b.tenant = in_tenant AND b.conversation_id = in_conversation_id
          AND b.agent_id = in_agent_id;
        INSERT INTO holdfast.boards (
            tenant, id, conversation_id, agent_id, agent_label, parent_agent_id, max_retries)
        VALUES (in_tenant, in_id, in_conversation_id, in_agent_id, in_agent_label,
                in_parent_agent_id, in_max_retries)
        ON CONFLICT (tenant, conversation_id, agent_id) DO NOTHING;
        -- Not done: somebody made one at the same moment; the next round replaces theirs.
        EXIT WHEN FOUND;
    END LOOP;
    INSERT INTO holdfast.cards (tenant, board_id, id, position, title)
    SELECT in_tenant, in_id, c.id, c.at - 1, c.title
    FROM unnest(in_card_ids, in_titles) WITH ORDINALITY AS c (id, title, at);
END
$$;

-- Appends cards after the highest position and returns the first of the new positions.
CREATE FUNCTION holdfast.add_cards(
    in_tenant text, in_board_id text, in_card_ids text[], in_titles text[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    first bigint;
BEGIN
    -- Others who add to the same board wait here, so that each batch stays in one piece.
    PERFORM 1 FROM holdfast.boards b
    WHERE b.tenant = in_tenant AND b.id = in_board_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF002', 'there is no such board',
                              jsonb_build_object('kind', 'board', 'key', in_board_id));
    END IF;
    SELECT coalesce(max(c.position) + 1, 0) INTO first FROM holdfast.cards c
    WHERE c.tenant = in_tenant AND c.board_id = in_board_id;
    INSERT INTO holdfast.cards (tenant, board_id, id, position, title)
    SELECT in_tenant, in_board_id, c.id, first + c.at - 1, c.title
    FROM unnest(in_card_ids, in_titles) WITH ORDINALITY AS c (id, title, at);
    RETURN first;
END
$$;
