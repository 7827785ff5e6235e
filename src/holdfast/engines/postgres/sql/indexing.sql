-- name: unindexed
-- Events of agents ($2) that wait for the index: about $3, and $4 messages before each range.
SELECT * FROM holdfast.waiting_events($1, $2, $3, $4);

-- name: index
-- Put a batch of an agent into the index; how many batches are not merged, and 0 if the index has changed
-- since the batch was read.
SELECT holdfast.index_words(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24);

-- name: index_with_vectors
-- The same with vectors: $25 where each range ends, $26 model, $27 dimension, $28 the ordinals of the events
-- that have one, $29 all numbers.
SELECT holdfast.index_with_vectors(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28, $29);

-- name: merge
-- Merge the blocks of an agent; how many rows fewer there are.
SELECT holdfast.merge_blocks($1, $2);

-- name: merge_slice
-- Merge a slice ($3 of $4, from 0) of the lexemes of an agent; how many rows fewer there are.
SELECT holdfast.merge_block_slice($1, $2, $3, $4);

-- name: queue
-- Which agents of which tenants have events that no index has yet: $1 limit.
SELECT * FROM holdfast.agents_to_index($1);

-- name: waiting
-- How many events of all tenants wait for the index at most.
SELECT holdfast.events_to_index();

-- name: unmerged
-- The agents of all tenants whose index has more than $1 batches that are not merged, and how many events
-- each has: $2 limit.
SELECT tenant, agent, documents FROM holdfast.event_agents WHERE small > $1 LIMIT $2;

-- name: free_blocks
-- The statement that frees the space of deleted blocks, if the connected role may run it.
SELECT 'VACUUM holdfast.event_blocks'
FROM pg_catalog.pg_class c
WHERE c.oid = 'holdfast.event_blocks'::regclass
    AND pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE');
