-- version: 5
-- The rows of the index of words: how they are read.

-- 16 bits of the digest of a lexeme, which say in which rows it can be.
CREATE OR REPLACE FUNCTION holdfast.word_hash(the_lexeme text) RETURNS int
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    digest CONSTANT bytea := sha256(convert_to(the_lexeme, 'UTF8'));
BEGIN
    RETURN get_byte(digest, 0) << 8 | get_byte(digest, 1);
END
$$;

-- The lexeme, and the labels of the rows of several lexemes in which it can be.
CREATE OR REPLACE FUNCTION holdfast.word_labels(the_lexeme text, the_levels int) RETURNS text[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    labels text[] := ARRAY[the_lexeme];
    hash int;
    level int := 3;
    bits int := the_levels >> 3;
BEGIN
    IF bits > 0 THEN
        hash := holdfast.word_hash(the_lexeme);
        WHILE bits > 0 LOOP
            IF bits & 1 = 1 THEN
                labels := labels || (' ' || level || ':' || (hash & ((1 << level) - 1)));
            END IF;
            level := level + 1;
            bits := bits >> 1;
        END LOOP;
    END IF;
    RETURN labels;
END
$$;

-- The number that slices of a merge are made of: the same for a lexeme and for all its labels.
CREATE OR REPLACE FUNCTION holdfast.word_slice(the_lexeme text, the_words text) RETURNS int
LANGUAGE sql STABLE
RETURN CASE WHEN the_words IS NULL THEN holdfast.word_hash(the_lexeme)
    ELSE split_part(the_lexeme, ':', 2)::int END & 7;

-- The postings of a row.
CREATE OR REPLACE FUNCTION holdfast.row_postings(
    the_first int, the_postings bigint[], the_packed int[]
) RETURNS TABLE (number int, times double precision, length double precision)
LANGUAGE sql IMMUTABLE ROWS 100
AS $$
    SELECT the_first + (p >> 42)::int, ((p >> 21) & 2097151)::double precision,
           (p & 2097151)::double precision
    FROM unnest(the_postings) AS p
    UNION ALL
    SELECT the_first + (p >> 15), ((p >> 11) & 15)::double precision, (p & 2047)::double precision
    FROM unnest(the_packed) AS p
$$;

DROP FUNCTION IF EXISTS holdfast.word_rows(int, int, text);

-- The rows with a lexeme of an agent, with the postings of this lexeme alone: packed ones too, in as many
-- bits as the others, and as they are. The number of a posting is above number_bits, its times above times_bits. grouped: the row
-- has other lexemes too, and its bounds are those of all.
CREATE OR REPLACE FUNCTION holdfast.word_rows(the_key int, the_levels int, the_lexeme text)
RETURNS TABLE (
    first int, last int, most smallint, shortest smallint, holding int, postings bigint[],
    wide bigint[], packed int[], number_bits int, times_bits int, times_mask bigint, length_mask bigint, grouped boolean)
LANGUAGE sql STABLE ROWS 10
AS $$
    SELECT b.first, b.last, b.most, b.shortest,
           CASE WHEN b.postings IS NOT NULL THEN cardinality(b.postings)
               WHEN w.at IS NULL THEN cardinality(b.packed)
               ELSE b.packed[w.at + 1] - b.packed[w.at] END,
           CASE WHEN b.postings IS NOT NULL THEN b.postings
               WHEN w.at IS NULL THEN b.packed::bigint[]
               ELSE b.packed[b.packed[w.at] + 1 : b.packed[w.at + 1]]::bigint[] END,
           b.postings,
           CASE WHEN w.at IS NULL THEN b.packed
               ELSE b.packed[b.packed[w.at] + 1 : b.packed[w.at + 1]] END,
           CASE WHEN b.postings IS NULL THEN 15 ELSE 42 END,
           CASE WHEN b.postings IS NULL THEN 11 ELSE 21 END,
           CASE WHEN b.postings IS NULL THEN 15 ELSE 2097151 END::bigint,
           CASE WHEN b.postings IS NULL THEN 2047 ELSE 2097151 END::bigint,
           w.at IS NOT NULL
    FROM holdfast.event_blocks b
    CROSS JOIN LATERAL (
        SELECT CASE WHEN b.words IS NOT NULL
            THEN array_position(string_to_array(b.words, ' '), the_lexeme) END AS at OFFSET 0
    ) w
    WHERE b.agent_key = the_key AND b.lexeme = ANY (holdfast.word_labels(the_lexeme, the_levels))
        AND (b.words IS NULL OR w.at IS NOT NULL)
$$;

-- words and packed of a row of several lexemes: of each posting its lexeme, in the order of both.
CREATE OR REPLACE FUNCTION holdfast.packed_words(
    the_lexemes text[], the_packed int[], OUT words text, OUT packed int[]
)
LANGUAGE sql IMMUTABLE
AS $$
    SELECT string_agg(w.word, ' ' ORDER BY w.last),
           (count(*) + 1)::int || array_agg((w.last + 1 + w.words)::int ORDER BY w.last)
               || the_packed
    FROM (
        SELECT word, max(at) AS last, count(*) OVER () AS words
        FROM unnest(the_lexemes) WITH ORDINALITY AS w (word, at) GROUP BY word
    ) w
$$;

-- The columns of a row without the events of some numbers, which ascend.
CREATE OR REPLACE FUNCTION holdfast.row_without(
    the_first int, the_postings bigint[], the_packed int[], the_words text, gone int[],
    OUT postings bigint[], OUT packed int[], OUT words text
)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF the_postings IS NOT NULL THEN
        postings := ARRAY(
            SELECT p FROM unnest(the_postings) AS p
            WHERE gone[width_bucket(the_first + (p >> 42)::int, gone)]
                IS DISTINCT FROM the_first + (p >> 42)::int
            ORDER BY p);
    ELSIF the_words IS NULL THEN
        packed := ARRAY(
            SELECT p FROM unnest(the_packed) AS p
            WHERE gone[width_bucket(the_first + (p >> 15), gone)]
                IS DISTINCT FROM the_first + (p >> 15)
            ORDER BY p);
    ELSE
        SELECT g.words, g.packed INTO words, packed
        FROM (
            SELECT array_agg(w.word ORDER BY w.at, p) AS lexemes, array_agg(p ORDER BY w.at, p) AS packed
            FROM unnest(string_to_array(the_words, ' ')) WITH ORDINALITY AS w (word, at)
            CROSS JOIN LATERAL unnest(
                the_packed[the_packed[w.at] + 1 : the_packed[w.at + 1]]) AS p
            WHERE gone[width_bucket(the_first + (p >> 15), gone)]
                IS DISTINCT FROM the_first + (p >> 15)
        ) k
        CROSS JOIN LATERAL holdfast.packed_words(k.lexemes, k.packed) g
        WHERE k.lexemes IS NOT NULL;
        packed := COALESCE(packed, '{}');
    END IF;
END
$$;

DROP FUNCTION IF EXISTS holdfast.postings_of(int, text, int[]);

-- The postings that a lexeme has in events of an agent, whose numbers are given in ascending order, each
-- with the place of its event among the numbers.
CREATE OR REPLACE FUNCTION holdfast.postings_of(
    the_key int, the_levels int, the_lexeme text, the_numbers int[]
) RETURNS TABLE (at int, times double precision, length double precision)
LANGUAGE sql STABLE ROWS 100
AS $$
    -- An array that is a variable is copied at each call of width_bucket; one in a row is not.
    WITH asked AS MATERIALIZED (
        SELECT the_numbers AS numbers
    )
    SELECT f.i, f.times::double precision, f.length::double precision
    FROM asked a
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.word_rows(the_key, the_levels, the_lexeme) b
        WHERE b.first <= a.numbers[cardinality(a.numbers)] AND b.last >= a.numbers[1]
        OFFSET 0
    ) b
    CROSS JOIN LATERAL (
        -- By halves, of the events that a row can have.
        SELECT i, (f.p >> b.times_bits) & b.times_mask AS times, f.p & b.length_mask AS length
        FROM generate_series(
            width_bucket(b.first - 1, a.numbers) + 1, width_bucket(b.last, a.numbers)) AS i
        CROSS JOIN LATERAL (
            SELECT CASE WHEN b.wide IS NULL
                THEN b.packed[width_bucket(((a.numbers[i] - b.first) << 15) | 32767, b.packed)]
                ELSE b.wide[width_bucket(
                    ((a.numbers[i] - b.first + 1)::bigint << 42) - 1, b.wide)] END AS p OFFSET 0
        ) f
        WHERE NOT b.grouped AND (f.p >> b.number_bits) = a.numbers[i] - b.first
        UNION ALL
        -- The few of a row with other lexemes.
        SELECT i, (p >> 11) & 15, p & 2047
        FROM unnest(b.packed) AS p
        CROSS JOIN LATERAL (
            SELECT width_bucket(b.first + (p >> 15), a.numbers) AS i OFFSET 0
        ) f
        WHERE b.grouped AND a.numbers[i] = b.first + (p >> 15)
    ) f
$$;
