-- version: 2
-- To-do boards.

-- Makes a board with its cards; the board that the agent had in the conversation goes with its own.
-- Returns the time of the cards.
CREATE OR REPLACE FUNCTION holdfast.put_board(
    in_tenant text, in_id text, in_conversation_id text, in_agent_id text, in_agent_label text,
    in_parent_agent_id text, in_max_retries bigint, in_card_ids text[], in_titles text[]
) RETURNS timestamptz
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := holdfast.now();
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
    INSERT INTO holdfast.cards (tenant, board_id, id, position, title, updated_at)
    SELECT in_tenant, in_id, c.id, c.at - 1, c.title, v_now
    FROM unnest(in_card_ids, in_titles) WITH ORDINALITY AS c (id, title, at);
    RETURN v_now;
END
$$;

-- Appends cards after the highest position. Returns the first of the new positions and their time.
CREATE OR REPLACE FUNCTION holdfast.append_cards(
    in_tenant text, in_board_id text, in_card_ids text[], in_titles text[],
    OUT first bigint, OUT at timestamptz
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz;
BEGIN
    -- Others who add to the same board wait here, so that each batch stays in one piece.
    PERFORM 1 FROM holdfast.boards b
    WHERE b.tenant = in_tenant AND b.id = in_board_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM holdfast.fail('HF002', 'there is no such board',
                              jsonb_build_object('kind', 'board', 'key', in_board_id));
    END IF;
    v_now := holdfast.now();
    SELECT coalesce(max(c.position) + 1, 0) INTO first FROM holdfast.cards c
    WHERE c.tenant = in_tenant AND c.board_id = in_board_id;
    INSERT INTO holdfast.cards (tenant, board_id, id, position, title, updated_at)
    SELECT in_tenant, in_board_id, c.id, first + c.place - 1, c.title, v_now
    FROM unnest(in_card_ids, in_titles) WITH ORDINALITY AS c (id, title, place);
    at := v_now;
END
$$;

-- Changes a card: what is NULL stays. Returns the status and the version that it had, and the card
-- if it was changed: not if it has another version than expected, nor if its status would change
-- from one of in_final. No row: there is no such card.
CREATE OR REPLACE FUNCTION holdfast.change_card(
    in_tenant text, in_board_id text, in_id text, in_status text, in_title text, in_note text,
    in_retry_count bigint, in_final text[], in_expected bigint
) RETURNS TABLE (
    was text, had bigint, id text, title text, status text, "position" bigint,
    retry_count bigint, note text, version bigint, updated_at timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    card holdfast.cards;
BEGIN
    SELECT c.* INTO card FROM holdfast.cards c
    WHERE c.tenant = in_tenant AND c.board_id = in_board_id AND c.id = in_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF card.version <> in_expected OR card.status <> in_status AND card.status = ANY (in_final) THEN
        was := card.status;
        had := card.version;
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := holdfast.now();
    RETURN QUERY
    UPDATE holdfast.cards c SET
        status = coalesce(in_status, c.status), title = coalesce(in_title, c.title),
        note = coalesce(in_note, c.note), retry_count = coalesce(in_retry_count, c.retry_count),
        version = c.version + 1, updated_at = v_now
    WHERE c.tenant = in_tenant AND c.board_id = in_board_id AND c.id = in_id
    RETURNING card.status, card.version, c.id, c.title, c.status, c.position, c.retry_count, c.note,
              c.version, c.updated_at;
END
$$;

-- Counts one more try of a card, as change_card does. No row also if its board allows no more.
CREATE OR REPLACE FUNCTION holdfast.retry_card(
    in_tenant text, in_board_id text, in_id text, in_final text[]
) RETURNS TABLE (
    was text, had bigint, id text, title text, status text, "position" bigint,
    retry_count bigint, note text, version bigint, updated_at timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    tries bigint;
BEGIN
    SELECT c.retry_count INTO tries FROM holdfast.cards c
    WHERE c.tenant = in_tenant AND c.board_id = in_board_id AND c.id = in_id FOR NO KEY UPDATE;
    IF tries < (SELECT b.max_retries FROM holdfast.boards b
                WHERE b.tenant = in_tenant AND b.id = in_board_id) THEN
        RETURN QUERY SELECT * FROM holdfast.change_card(
            in_tenant, in_board_id, in_id, 'in_progress', NULL, NULL, tries + 1, in_final, NULL);
    END IF;
END
$$;
