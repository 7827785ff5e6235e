"""The rows of the index of words: every form is found, merged and removed alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.word_blocks import word_hash
from holdfast.testing.inmemory import InMemoryHarness
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.postgres_database import as_keeper, empty_database, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
# The rows that versions before it left: one for each lexeme, with 64 bits for each posting.
_EARLIER = """
WITH old AS (DELETE FROM holdfast.event_blocks b RETURNING b.*), flat AS (
    SELECT o.agent_key, o.lexeme, p.* FROM old o
    CROSS JOIN LATERAL holdfast.row_postings(o.first, o.postings, o.packed) p WHERE o.words IS NULL
    UNION ALL
    SELECT o.agent_key, w.word, p.* FROM old o
    CROSS JOIN LATERAL unnest(string_to_array(o.words, ' ')) WITH ORDINALITY AS w (word, at)
    CROSS JOIN LATERAL holdfast.row_postings(
        o.first, NULL, o.packed[o.packed[w.at] + 1 : o.packed[w.at + 1]]) p
)
INSERT INTO holdfast.event_blocks (agent_key, lexeme, first, last, most, shortest, postings)
SELECT b.agent_key, b.lexeme, b.base, max(b.number), max(b.times), min(b.length),
       array_agg(((b.number - b.base)::bigint << 42) | (b.times::bigint << 21) | b.length::bigint
           ORDER BY b.number)
FROM (
    SELECT f.*, min(f.number) OVER (PARTITION BY f.agent_key, f.lexeme, f.number / 256) AS base
    FROM flat f
) b
GROUP BY b.agent_key, b.lexeme, b.base
"""


def _events() -> list[Event]:
    """Rare and common words, a word that stands very often, and a text of very many words."""
    texts = [f"tide n{at} {'moon' if at % 3 else 'gull'} w{at % 40}" for at in range(700)]
    texts[100] += " gull" * 40
    texts[200] += " ".join(f"x{at}" for at in range(2500))
    return [
        Event(ANA, f"s{at % 3}", "note", {"": text}, id=f"e{at:03}", occurred_at=NOON)
        for at, text in enumerate(texts)
    ]


QUESTIONS = ("n7", "gull n100", "w5 moon", "x77 tide", "w39 n199 x1", "n200")


async def _hits(store: Any) -> list[list[tuple[str, float]]]:
    return [
        [(one.event.id, round(one.score, 9)) for one in await store.recall(ANA, asked, limit=20)]
        for asked in QUESTIONS
    ]


async def test_rows_of_the_earlier_form_are_found_merged_and_removed_like_new_ones() -> None:
    memory = InMemoryHarness()
    await memory.open()
    known = memory.store("episodes")
    await known.append(_events())
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=2)
        store = EpisodicMemory(PostgresEpisodes(engine))
        await store.append(_events())
        assert await _hits(store) == await _hits(known)
        async with as_keeper(engine) as keeper:
            await keeper.execute(_EARLIER)
            await keeper.execute("UPDATE holdfast.event_agents SET levels = 0")
            earlier = await keeper.fetchval("SELECT count(*) FROM holdfast.event_blocks")
        assert await _hits(store) == await _hits(known)
        for one in (store, known):
            await one.clear("s1")
        assert await _hits(store) == await _hits(known)
        async with as_keeper(engine) as keeper:
            await keeper.fetchval("SELECT holdfast.merge_blocks('default', $1)", str(ANA))
            rows = await keeper.fetch("SELECT * FROM holdfast.event_blocks")
        short = [row for row in rows if not row["lexeme"].startswith("x")]
        assert len(short) < (earlier - 2500) / 3
        assert any(row["words"] for row in rows)
        # What does not fit 32 bits is in 64: a word of 41 times is of s1, and is gone.
        wide = [row for row in rows if row["postings"] is not None]
        assert {row["lexeme"] for row in wide} >= {"x77", "x2499"}
        assert all(any(one & (1 << 21) - 1 > 2047 for one in row["postings"]) for row in wide)
        assert [row["first"] for row in rows if row["lexeme"] == "tide" and row["packed"]]
        assert await _hits(store) == await _hits(known)
        for one in (store, known):
            await one.clear("s2")
        assert await _hits(store) == await _hits(known)
        async with as_keeper(engine) as keeper:
            left = await keeper.fetch("SELECT lexeme, words FROM holdfast.event_blocks")
        words = {word for row in left for word in (row["words"] or row["lexeme"]).split()}
        assert "n1" not in words
        assert "n2" not in words
        assert "x77" not in words
        assert "n3" in words
        await engine.aclose()
    await memory.close()


async def test_a_row_of_rare_words_whose_events_are_all_removed_is_removed_too() -> None:
    def batch(session: str) -> list[Event]:
        texts = (f"{session}n{at} w{at % 40} tide" for at in range(100))
        return [
            Event(ANA, session, "note", {"": text}, id=f"{session}{at:02}", occurred_at=NOON)
            for at, text in enumerate(texts)
        ]

    async def hits(store: Any) -> list[list[tuple[str, float]]]:
        asked = [f"{session}n{at}" for session in ("s1", "s2") for at in range(100)]
        asked += [f"w{at}" for at in range(40)]
        return [
            [(one.event.id, round(one.score, 9)) for one in await store.recall(ANA, each, limit=20)]
            for each in asked
        ]

    memory = InMemoryHarness()
    await memory.open()
    known = memory.store("episodes")
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=2)
        store = EpisodicMemory(PostgresEpisodes(engine))
        for one in (store, known):
            await one.append(batch("s1"))
            await one.recall(ANA, "tide")
            await one.append(batch("s2"))
            await one.recall(ANA, "tide")
            await one.delete_session("s1")
        async with as_keeper(engine) as keeper:
            labels = (
                "SELECT lexeme FROM holdfast.event_blocks WHERE lexeme ~ '^ ' AND words IS NULL"
            )
            assert await keeper.fetch(labels) == []
            # Twice: a merge groups what the one before it has left.
            for _ in range(2):
                assert await hits(store) == await hits(known)
                await keeper.fetchval("SELECT holdfast.merge_blocks('default', $1)", str(ANA))
        assert await hits(store) == await hits(known)
        await engine.aclose()
    await memory.close()


async def test_a_lexeme_has_the_same_labels_in_sql_and_here() -> None:
    words = ["tide", "ebbe", "潮", "привет", "a" * 64]
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=1)
        async with as_keeper(engine) as keeper:
            for word in words:
                found = await keeper.fetchval("SELECT holdfast.word_labels($1, 40)", word)
                assert found == [word, f" 3:{word_hash(word) % 8}", f" 5:{word_hash(word) % 32}"]
        await engine.aclose()
