-- version: 1
-- The rows of the index of words are merged: up to 256 postings of a lexeme, or many rare lexemes, in one.

-- Merge rows of an agent; how many fewer there are. Of each lexeme those from the first that is not full are
-- taken. Rows of several lexemes, and lexemes with few postings, are grouped anew when a part of them is not
-- grouped well. Lexemes are in 1, 2, 4 or 8 slices, which can be merged one after another: the rows of one
-- take the space that a VACUUM freed in those before it.
CREATE OR REPLACE FUNCTION holdfast.merge_block_slice(
    the_tenant text, the_agent text, the_slice int, the_slices int
) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    agent holdfast.event_agents := holdfast.lock_event_agent(the_tenant, the_agent);
    -- A lexeme with fewer postings is grouped with others (word_blocks.py).
    few CONSTANT int := 64;
    most_bytes CONSTANT int := 1700;
    rare bigint;
    alone bigint;
    groups bigint;
    grouping boolean;
    its_levels int;
    fewer bigint;
BEGIN
    SELECT COALESCE(sum(b.count), 0), COALESCE(sum(b.count) FILTER (WHERE b.alone), 0),
           count(*) FILTER (WHERE NOT b.alone)
    INTO rare, alone, groups
    FROM (
        SELECT b.words IS NULL AS alone, COALESCE(
            cardinality(b.postings), cardinality(b.packed) - COALESCE(b.packed[1], 0)) AS count
        FROM holdfast.event_blocks b
        WHERE b.agent_key = agent.key AND holdfast.word_slice(b.lexeme, b.words) % the_slices = the_slice
            AND (b.words IS NOT NULL OR COALESCE(cardinality(b.postings), cardinality(b.packed)) < few)
    ) b;
    grouping := the_slices > 1 OR alone * 2 > rare OR groups > GREATEST(16, rare / 32);

    WITH mine AS MATERIALIZED (
        SELECT b.ctid AS at, b.* FROM holdfast.event_blocks b
        WHERE b.agent_key = agent.key AND holdfast.word_slice(b.lexeme, b.words) % the_slices = the_slice
    ), starts AS MATERIALIZED (
        SELECT s.lexeme, min(s.first) AS start
        FROM (
            SELECT m.lexeme, m.first, COALESCE(cardinality(m.postings), cardinality(m.packed)) AS count,
                   m.postings IS NOT NULL AND m.most < 16 AND m.last - m.first < 65536 AND NOT EXISTS (
                       SELECT FROM unnest(m.postings) AS p WHERE p & 2097151 > 2047) AS wide
            FROM mine m WHERE m.words IS NULL
            UNION ALL
            SELECT w.word, m.first + (m.packed[m.packed[w.at] + 1] >> 15), 0, false
            FROM mine m
            CROSS JOIN LATERAL unnest(string_to_array(m.words, ' ')) WITH ORDINALITY AS w (word, at)
            WHERE grouping AND m.words IS NOT NULL
        ) s
        WHERE s.count < 256 OR s.wide
        GROUP BY s.lexeme
        HAVING bool_or(s.wide) OR (grouping AND min(s.count) < few)
            OR count(*) > 1 + (max(s.first) >> 16) - (min(s.first) >> 16)
    ), taken AS (
        DELETE FROM holdfast.event_blocks b
        USING mine m LEFT JOIN starts s ON s.lexeme = m.lexeme
        WHERE b.ctid = m.at
            AND CASE WHEN m.words IS NULL THEN m.last >= s.start ELSE grouping END
        RETURNING b.*
    ), flat AS MATERIALIZED (
        SELECT t.lexeme, p.number, p.times::bigint AS times, p.length::bigint AS length
        FROM taken t
        CROSS JOIN LATERAL holdfast.row_postings(t.first, t.postings, t.packed) p
        WHERE t.words IS NULL
        UNION ALL
        SELECT w.word, p.number, p.times::bigint, p.length::bigint
        FROM taken t
        CROSS JOIN LATERAL unnest(string_to_array(t.words, ' ')) WITH ORDINALITY AS w (word, at)
        CROSS JOIN LATERAL holdfast.row_postings(
            t.first, NULL, t.packed[t.packed[w.at] + 1 : t.packed[w.at + 1]]) p
        WHERE t.words IS NOT NULL
    ), common AS MATERIALIZED (
        -- What is left of a lexeme in rows of its own, it goes on there.
        SELECT DISTINCT m.lexeme FROM mine m JOIN starts s ON s.lexeme = m.lexeme
        WHERE m.words IS NULL AND m.last < s.start
    ), parts AS (
        SELECT f.lexeme, f.number >> 16 AS part, count(*) AS count, max(f.times) AS most,
               max(f.length) AS longest
        FROM flat f GROUP BY f.lexeme, f.number >> 16
    ), rare AS MATERIALIZED (
        SELECT p.lexeme, p.part, p.count
        FROM parts p LEFT JOIN common c ON c.lexeme = p.lexeme
        WHERE grouping AND p.count < few AND p.most < 16 AND p.longest < 2048 AND c.lexeme IS NULL
    ), level AS MATERIALIZED (
        -- About 128 postings in a group. The next level, if it is there already, keeps all slices at one.
        SELECT LEAST(l.level + CASE WHEN agent.levels & (3 << l.level) = 2 << l.level THEN 1 ELSE 0 END,
                     16) AS level
        FROM (
            SELECT GREATEST(ceil(log(2, GREATEST(
                       sum(r.count) * the_slices / count(DISTINCT r.part) / 128, 1)))::int, 3) AS level
            FROM rare r HAVING count(*) > 0
        ) l
    ), labelled AS MATERIALIZED (
        SELECT p.lexeme, p.part, ' ' || l.level || ':'
                   || (holdfast.word_hash(r.lexeme) & ((1 << l.level) - 1)) AS label,
               p.count * 4 + octet_length(p.lexeme) + 5 AS bytes
        FROM parts p
        LEFT JOIN rare r ON r.lexeme = p.lexeme AND r.part = p.part
        LEFT JOIN level l ON r.lexeme IS NOT NULL
    ), sized AS MATERIALIZED (
        SELECT l.*, l.label IS NOT NULL AND sum(l.bytes) OVER (
                   PARTITION BY l.label, l.part ORDER BY l.lexeme) <= most_bytes AS together
        FROM labelled l
    ), ranked AS (
        SELECT f.*, s.part, s.label, s.together,
               CASE WHEN s.together THEN 0 ELSE (row_number() OVER (
                   PARTITION BY f.lexeme, s.part ORDER BY f.number) - 1) / 256 END AS piece
        FROM flat f JOIN sized s ON s.lexeme = f.lexeme AND s.part = f.number >> 16
    ), keyed AS (
        SELECT CASE WHEN r.together THEN r.label ELSE r.lexeme END AS key, r.*
        FROM ranked r
    ), based AS (
        SELECT k.*, min(k.number) OVER piece AS base,
               max(k.times) OVER piece < 16 AND max(k.length) OVER piece < 2048 AS narrow
        FROM keyed k WINDOW piece AS (PARTITION BY k.key, k.part, k.piece)
    ), merged AS (
        INSERT INTO holdfast.event_blocks
            (agent_key, lexeme, first, last, most, shortest, words, postings, packed)
        SELECT agent.key, m.key, m.base, m.last, LEAST(m.most, 32767), LEAST(m.shortest, 32767),
               CASE WHEN m.together THEN g.words END,
               CASE WHEN NOT m.narrow THEN m.postings END,
               CASE WHEN m.together THEN g.packed WHEN m.narrow THEN m.packed END
        FROM (
            SELECT b.key, b.base, b.together, bool_and(b.narrow) AS narrow, max(b.number) AS last,
                   max(b.times) AS most, min(b.length) AS shortest,
                   array_agg((b.number - b.base)::bigint << 42 | (b.times << 21) | b.length
                       ORDER BY b.number) FILTER (WHERE NOT b.narrow) AS postings,
                   array_agg(CASE WHEN b.narrow THEN
                           (b.number - b.base) << 15 | (b.times::int << 11) | b.length::int END
                       ORDER BY b.lexeme, b.number) FILTER (WHERE b.narrow) AS packed,
                   array_agg(b.lexeme ORDER BY b.lexeme, b.number) FILTER (WHERE b.together) AS lexemes
            FROM based b GROUP BY b.key, b.part, b.piece, b.base, b.together
        ) m
        CROSS JOIN LATERAL holdfast.packed_words(
            CASE WHEN m.together THEN m.lexemes END, CASE WHEN m.together THEN m.packed END) g
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM taken) - (SELECT count(*) FROM merged),
           (SELECT 1 << l.level FROM level l)
    INTO fewer, its_levels;
    UPDATE holdfast.event_agents a
    SET levels = CASE WHEN NOT grouping THEN a.levels
            WHEN the_slice < the_slices - 1 THEN a.levels | COALESCE(its_levels, 0)
            ELSE (SELECT COALESCE(bit_or(1 << l.level), 0) FROM (
                SELECT DISTINCT split_part(substr(b.lexeme, 2), ':', 1)::int AS level
                FROM holdfast.event_blocks b
                WHERE b.agent_key = agent.key AND b.words IS NOT NULL) l) END,
        small = CASE WHEN the_slice < the_slices - 1 THEN a.small ELSE 0 END
    WHERE a.tenant = the_tenant AND a.agent = the_agent;
    RETURN fewer;
END
$$;

-- All slices at once.
CREATE OR REPLACE FUNCTION holdfast.merge_blocks(the_tenant text, the_agent text) RETURNS bigint
LANGUAGE sql
AS $$
    SELECT holdfast.merge_block_slice(the_tenant, the_agent, 0, 1)
$$;
