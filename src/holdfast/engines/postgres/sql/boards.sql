-- name: create
-- Make a board with its cards, or replace the one that is there.
SELECT holdfast.create_board($1, $2, $3, $4, $5, $6, $7, $8::text[], $9::text[]);

-- name: by_id
-- A board, one row for each card, or one without a card.
SELECT b.id AS board_id, b.conversation_id, b.max_retries, b.agent_id, b.agent_label,
       b.parent_agent_id, c.id, c.title, c.status, c.position, c.retry_count, c.note
FROM holdfast.boards b
LEFT JOIN holdfast.cards c ON c.tenant = $1 AND c.board_id = b.id
WHERE b.tenant = $1 AND b.id = $2
ORDER BY c.position;

-- name: by_conversation
-- All boards of a conversation in order of creation, or only the main one ($3).
SELECT b.id AS board_id, b.conversation_id, b.max_retries, b.agent_id, b.agent_label,
       b.parent_agent_id, c.id, c.title, c.status, c.position, c.retry_count, c.note
FROM (
    SELECT * FROM holdfast.boards
    WHERE tenant = $1 AND conversation_id = $2
    ORDER BY ($3 AND agent_id <> ''), created
    LIMIT CASE WHEN $3 THEN 1 END
) b
LEFT JOIN holdfast.cards c ON c.tenant = $1 AND c.board_id = b.id
ORDER BY b.created, c.position;

-- name: conversations
-- A page of the conversations that have boards, after $2, in the ranges $3 to $4 and from $5 on: how many
-- boards, cards, and cards that are not in one of the states $7 each has.
SELECT found.conversation_id, counted.boards, counted.cards, counted.left
FROM (
    (SELECT DISTINCT b.conversation_id FROM holdfast.boards b
     WHERE b.tenant = $1 AND b.conversation_id > $2 AND b.conversation_id >= $3
       AND b.conversation_id < $4
     ORDER BY b.conversation_id LIMIT $6)
    UNION ALL
    (SELECT DISTINCT b.conversation_id FROM holdfast.boards b
     WHERE b.tenant = $1 AND b.conversation_id > $2 AND b.conversation_id >= $5
     ORDER BY b.conversation_id LIMIT $6)
    ORDER BY 1 LIMIT $6
) found
CROSS JOIN LATERAL (
    SELECT count(DISTINCT b.id) AS boards, count(c.id) AS cards,
           count(c.id) FILTER (WHERE c.status <> ALL ($7::text[])) AS left
    FROM holdfast.boards b
    LEFT JOIN holdfast.cards c ON c.tenant = $1 AND c.board_id = b.id
    WHERE b.tenant = $1 AND b.conversation_id = found.conversation_id
) counted
ORDER BY found.conversation_id;

-- name: add
-- Append cards; the first of their positions.
SELECT holdfast.add_cards($1, $2, $3::text[], $4::text[]);

-- name: delete_board
-- Remove a board with its cards.
DELETE FROM holdfast.boards WHERE tenant = $1 AND id = $2 RETURNING true;

-- name: delete
-- Remove a card.
DELETE FROM holdfast.cards WHERE tenant = $1 AND board_id = $2 AND id = $3 RETURNING true;

-- name: rename
-- A new title.
UPDATE holdfast.cards SET title = $4
WHERE tenant = $1 AND board_id = $2 AND id = $3
RETURNING id, title, status, position, retry_count, note;

-- name: move
-- Set status and note, unless the card is in one of the states $6; and the status it had.
WITH card AS MATERIALIZED (
    SELECT * FROM holdfast.cards
    WHERE tenant = $1 AND board_id = $2 AND id = $3 FOR NO KEY UPDATE
), moved AS (
    UPDATE holdfast.cards c
    SET status = $4, note = CASE WHEN $5 = '""' THEN c.note ELSE $5 END
    FROM card
    WHERE c.tenant = $1 AND c.board_id = card.board_id AND c.id = card.id
      AND (card.status = $4 OR card.status <> ALL ($6::text[]))
    RETURNING c.id, c.title, c.status, c.position, c.retry_count, c.note
)
SELECT card.status AS was, moved.* FROM card LEFT JOIN moved ON true;

-- name: retry
-- Count one more try, within the board's maximum and unless in one of the states $4.
WITH card AS MATERIALIZED (
    SELECT c.*, c.retry_count < b.max_retries AS may_retry
    FROM holdfast.cards c
    JOIN holdfast.boards b ON b.tenant = $1 AND b.id = c.board_id
    WHERE c.tenant = $1 AND c.board_id = $2 AND c.id = $3 FOR NO KEY UPDATE OF c
), moved AS (
    UPDATE holdfast.cards c
    SET status = 'in_progress', retry_count = c.retry_count + 1
    FROM card
    WHERE c.tenant = card.tenant AND c.board_id = card.board_id AND c.id = card.id
      AND card.may_retry AND card.status <> ALL ($4::text[])
    RETURNING c.id, c.title, c.status, c.position, c.retry_count, c.note
)
SELECT card.status AS was, card.may_retry, moved.* FROM card LEFT JOIN moved ON true;

-- name: revive
-- Plan a card afresh.
UPDATE holdfast.cards SET status = 'planned', retry_count = 0, note = '""'
WHERE tenant = $1 AND board_id = $2 AND id = $3
RETURNING id, title, status, position, retry_count, note;
