-- name: create
-- Make a board with its cards, or replace the one that is there. The time of the cards.
SELECT holdfast.put_board($1, $2, $3, $4, $5, $6, $7, $8::text[], $9::text[]);

-- name: by_id
-- A board, one row for each card, or one without a card.
SELECT b.id AS board_id, b.conversation_id, b.max_retries, b.agent_id, b.agent_label,
       b.parent_agent_id, c.id, c.title, c.status, c.position, c.retry_count, c.note,
       c.version, c.updated_at
FROM holdfast.boards b
LEFT JOIN holdfast.cards c ON c.tenant = $1 AND c.board_id = b.id
WHERE b.tenant = $1 AND b.id = $2
ORDER BY c.position;

-- name: by_conversation
-- All boards of a conversation in order of creation, or only the main one ($3).
SELECT b.id AS board_id, b.conversation_id, b.max_retries, b.agent_id, b.agent_label,
       b.parent_agent_id, c.id, c.title, c.status, c.position, c.retry_count, c.note,
       c.version, c.updated_at
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
-- Append cards; the first of their positions, and their time.
SELECT * FROM holdfast.append_cards($1, $2, $3::text[], $4::text[]);

-- name: delete_board
-- Remove a board with its cards.
DELETE FROM holdfast.boards WHERE tenant = $1 AND id = $2 RETURNING true;

-- name: delete
-- Remove a card.
DELETE FROM holdfast.cards WHERE tenant = $1 AND board_id = $2 AND id = $3 RETURNING true;

-- name: change
-- Change a card: $4 status, $5 title, $6 note, $7 retries; $8 states it stays in, $9 expected version.
SELECT * FROM holdfast.change_card($1, $2, $3, $4, $5, $6, $7, $8::text[], $9);

-- name: retry
-- Count one more try, within the board's maximum and unless in one of the states $4.
SELECT * FROM holdfast.retry_card($1, $2, $3, $4::text[]);
