"""The search by words reads what it must, and finds what reading everything would find."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import accumulate, product
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.word_blocks import word_hash
from holdfast.values.codec import decode_json
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.ranking import K1, B, idf, saturation
from holdfast.values.recall_rules import (
    CANDIDATES,
    Candidate,
    Ranked,
    day_words,
    in_order,
    index_text,
    rank,
)
from holdfast.values.text import tokenize
from tests.engines.postgres_database import as_keeper, connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
WORDS = ["".join(letters) for letters in product("bdfgk", "ao", "lmnrt", "ao", "mpk")]
OFTEN = list(accumulate(1 / (rank + 1) for rank in range(len(WORDS))))
TYPES = ("note", "decision", "call")
MASK = (1 << 21) - 1


@asynccontextmanager
async def _opened(
    *, work_mem: str = "4MB", major: int = 18, connections: int = 1
) -> AsyncIterator[EpisodicMemory]:
    async with empty_database(major) as url:
        async with connected(url) as connection:
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE \"{name}\" SET work_mem = '{work_mem}'")
        engine = await Postgres.open(url, auto_migrate=True, max_connections=connections)
        yield EpisodicMemory(PostgresEpisodes(engine))
        await engine.aclose()


def _random_events(rng: random.Random, count: int) -> list[Event]:
    """Words as in a language, a few texts again and again, and ids in no order."""
    same = [" ".join(rng.choices(WORDS, cum_weights=OFTEN, k=4)) for _ in range(5)]
    texts = [
        rng.choice(same)
        if rng.random() < 0.3
        else " ".join(rng.choices(WORDS, cum_weights=OFTEN, k=rng.randint(0, 25)))
        for _ in range(count)
    ]
    return [
        Event(
            ANA,
            f"s{rng.randrange(6)}",
            rng.choice(TYPES),
            {"text": text},
            id=f"{rng.randrange(16**8):08x}-{at}",
            occurred_at=NOON + timedelta(minutes=rng.randrange(1000)),
        )
        for at, text in enumerate(texts)
    ]


class _Everything:
    """BM25 of every event, whether it can be among the best or not."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        texts = [index_text(one.type, one.payload, one.occurred_at, []) for one in events]
        self._counts = [Counter(tokenize(text)) for text in texts]
        self._lengths = [one.total() for one in self._counts]
        self._average = sum(self._lengths) / len(events)
        self._holding = Counter(lexeme for one in self._counts for lexeme in one)

    def recall(self, question: str, limit: int, filters: dict[str, Any]) -> list[Ranked]:
        """All that a search ranks, the best first."""
        lexemes = list(dict.fromkeys(tokenize(question)))
        found = []
        for event, words, length in zip(self._events, self._counts, self._lengths, strict=True):
            score = 0.0
            for lexeme in lexemes:
                if times := words.get(lexeme):
                    rare = idf(len(self._events), self._holding[lexeme])
                    score += rare * saturation(times, length, self._average)
            if score and _fits(event, **filters):
                position = (event.session_id, event.epoch or 0, event.seq or 0)
                found.append(Candidate(event.id, position, score))
        found.sort(key=lambda one: one.position)
        best = in_order(range(len(found)), lambda at: found[at].lexical)
        return rank([found[at] for at in best[: max(CANDIDATES, limit)]])


def _fits(
    event: Event,
    session_id: str | None = None,
    types: list[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> bool:
    return (
        (session_id is None or event.session_id == session_id)
        and (types is None or event.type in types)
        and (since is None or event.occurred_at >= since)
        and (until is None or event.occurred_at < until)
    )


def _engine(store: EpisodicMemory) -> Postgres:
    storage = store._storage
    assert isinstance(storage, PostgresEpisodes)
    return storage._engine


async def _postings(store: EpisodicMemory) -> dict[tuple[str, str], list[tuple[int, int, int]]]:
    """The postings of each lexeme of each agent: number, times and length."""
    async with as_keeper(_engine(store)) as connection:
        rows = await connection.fetch(
            "SELECT a.agent, a.levels, b.* FROM holdfast.event_blocks b "
            "JOIN holdfast.event_agents a ON a.key = b.agent_key ORDER BY a.agent, lexeme, first"
        )
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    ends: dict[tuple[str, str], int] = {}
    for row in rows:
        first, last, parts = row["first"], row["last"], [(row["lexeme"], row["packed"])]
        if row["words"] is not None:
            level, bits = map(int, row["lexeme"].split(":"))
            words, packed = row["words"].split(" "), row["packed"]
            assert [*words, packed[0]] == [*sorted(words), len(words) + 1]
            assert row["levels"] & 1 << level
            assert {word_hash(word) % (1 << level) for word in words} == {bits}
            parts = [(word, packed[packed[at] : packed[at + 1]]) for at, word in enumerate(words)]
        for lexeme, narrow in parts:
            held = [(first + (one >> 15), one >> 11 & 15, one & 2047) for one in narrow or ()]
            if narrow is None:
                held = [
                    (first + (one >> 42), one >> 21 & MASK, one & MASK) for one in row["postings"]
                ]
            assert 0 < len(held) <= 256
            assert held == sorted(held)
            assert first <= held[0][0] <= held[-1][0] <= last
            assert row["most"] >= max(times for _, times, _ in held)
            assert row["shortest"] <= min(length for _, _, length in held)
            found.setdefault((row["agent"], lexeme), []).extend(held)
            if row["words"] is None:
                # Rows of one lexeme do not overlap.
                assert ends.get((row["agent"], lexeme), 0) < first
                ends[row["agent"], lexeme] = held[-1][0]
    return {key: sorted(held) for key, held in found.items()}


async def _checked(store: EpisodicMemory) -> None:
    """Check that the index is what the log gives, and that its totals are right."""
    async with as_keeper(_engine(store)) as connection:
        rows = await connection.fetch(
            "SELECT a.agent, x.number, x.length, e.type, e.body, e.occurred_at, a.documents, "
            "sum(x.length) OVER w AS total, a.length, count(*) OVER w AS counted "
            "FROM holdfast.event_numbers x "
            "JOIN holdfast.event_agents a ON a.key = x.agent_key "
            "LEFT JOIN holdfast.events e USING (session_key, epoch, seq) "
            "WINDOW w AS (PARTITION BY a.agent) ORDER BY a.agent, x.number"
        )
        events, agents = await connection.fetchrow(
            "SELECT (SELECT count(*) FROM holdfast.events), "
            "(SELECT sum(documents) FROM holdfast.event_agents)"
        )
    assert len(rows) == events == agents
    wanted: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for agent, number, length, kind, body, when, documents, total, sum_, counted in rows:
        words = Counter(tokenize(index_text(kind, decode_json(body), when, [])))
        assert (words.total(), documents, total) == (length, counted, sum_)
        for lexeme, times in words.items():
            wanted.setdefault((agent, lexeme), []).append((number, times, length))
    assert await _postings(store) == wanted


async def _blocks_read(store: EpisodicMemory, question: str) -> tuple[int, int]:
    """How many blocks a search reads, and how many can have its lexemes."""
    lexemes = list(dict.fromkeys(tokenize(question)))
    async with as_keeper(_engine(store)) as connection:
        [read] = await _reads(connection, ["event_blocks_pkey"], *_search(lexemes))
        held = await connection.fetchval(
            "SELECT count(*)::int FROM holdfast.event_agents a CROSS JOIN unnest($1::text[]) one "
            "JOIN holdfast.event_blocks b ON b.agent_key = a.key "
            "AND b.lexeme = ANY (holdfast.word_labels(one, a.levels))",
            lexemes,
        )
    return read, held


def _search(
    lexemes: list[str], vector: list[float] | None = None, *, filters: Sequence[Any] = [None] * 4
) -> tuple[Any, ...]:
    """The statement of a search, and its parameters."""
    return (
        *(load("recall")["search"], "default", str(ANA), "", "", 100, lexemes, [], vector, "m"),
        *(100, *filters, None, None, None, K1, B, 4096, 0, 16),
    )


async def _reads(connection: Any, indexes: list[str], sql: str, *args: Any) -> list[int]:
    """How many entries of each index a statement reads."""
    counters = (
        "SELECT pg_stat_get_xact_tuples_returned(('holdfast.' || name)::regclass) "
        "FROM unnest($1::text[]) WITH ORDINALITY AS i (name, at) ORDER BY at"
    )
    async with connection.transaction():
        before = [row[0] for row in await connection.fetch(counters, indexes)]
        await connection.fetch(sql, *args)
        after = [row[0] for row in await connection.fetch(counters, indexes)]
    return [now - then for then, now in zip(before, after, strict=True)]


async def _merge(store: EpisodicMemory, agent: AgentId, at: int = 0, slices: int = 1) -> int:
    async with as_keeper(_engine(store)) as connection:
        fewer: int = await connection.fetchval(
            "SELECT holdfast.merge_block_slice('default', $1, $2, $3)", str(agent), at, slices
        )
    return fewer


@pytest.mark.parametrize(
    ("seed", "work_mem", "major"), [(1, "4MB", 18), (2, "64kB", 18), (3, "4MB", 16)]
)
async def test_a_search_finds_what_reading_everything_finds(
    seed: int, work_mem: str, major: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same every time
    async with _opened(work_mem=work_mem, major=major) as store:
        events: list[Event] = []
        for cleared in (None, "s1", "s4"):
            events += await store.append(_random_events(rng, 900))
            if cleared:
                kinds = rng.choice([None, ["note"]])
                await store.recall(ANA, "indexed?")
                await store.clear(cleared, types=kinds)
                events = [
                    one
                    for one in events
                    if one.session_id != cleared or (kinds and one.type not in kinds)
                ]
            everything = _Everything(events)
            for _ in range(30):
                asked = rng.choices(WORDS, cum_weights=OFTEN, k=rng.randint(1, 8))
                question = " ".join([*asked, *rng.sample(WORDS, rng.randint(0, 2))])
                since = NOON + timedelta(minutes=rng.randrange(1000))
                filters: dict[str, Any] = rng.choice(
                    [
                        {},
                        {},
                        {"session_id": rng.choice(("s2", "s1", "never"))},
                        {"types": rng.sample(TYPES, 2)},
                        {"since": since, "until": since + timedelta(minutes=100)},
                        {"session_id": "s3", "types": ["call"], "until": since},
                    ]
                )
                for limit in (0, 5, 150):
                    wanted = everything.recall(question, limit, filters)[:limit]
                    found = await store.recall(ANA, question, limit=limit, **filters)
                    assert [one.event.id for one in found] == [one.candidate.key for one in wanted]
                    for one, other in zip(found, wanted, strict=True):
                        assert one.score == pytest.approx(other.score, abs=1e-9)
                        assert one.scores == pytest.approx(other.scores, abs=1e-9)
            await _checked(store)
            await _merge(store, ANA)
            await _checked(store)
            assert await _merge(store, ANA) == 0


async def test_blocks_merged_in_slices_are_those_of_one_merge() -> None:
    rng = random.Random(4)  # noqa: S311 - the same every time
    async with _opened() as store:
        for _ in range(3):
            await store.append(_random_events(rng, 50))
            await store.recall(ANA, "indexed?")
        fewer = []
        for at in range(4):
            fewer.append(await _merge(store, ANA, at, 4))
            await _checked(store)
            async with as_keeper(_engine(store)) as connection:
                waits = await connection.fetchval(
                    "SELECT small > 1 FROM holdfast.event_agents WHERE agent = $1", str(ANA)
                )
            assert waits == (at < 3)
        assert min(fewer) > 0
        assert await _merge(store, ANA) == 0


async def test_what_a_search_reads_does_not_grow_with_common_words() -> None:
    async with _opened() as store:
        texts = [f"tide {'ship' if at % 2 else 'moon'} n{at}" for at in range(6000)]
        for at in range(200):
            texts[at * 30] += " quokka"
        await store.append([Event(ANA, "s1", "note", {"text": text}) for text in texts])
        await store.recall(ANA, "indexed?")
        read, held = await _blocks_read(store, "tide ship quokka")
        assert held > 30
        # Each is read to count, the rare one to rank, and each is looked up for the candidates:
        # when some of them are ruled out, and when the others are scored.
        assert read <= 3 * held


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_search_looks_up_by_keys_also_while_tables_have_no_statistics(
    *, analyzed: bool
) -> None:
    indexes = ["event_blocks_pkey", "event_numbers_pkey", "events_by_id", "events_of_agent"]
    async with _opened() as store:
        texts = [f"tide {at % 10} n{at}" for at in range(1000)]
        await store.append([Event(ANA, "s1", "note", {"text": text}) for text in texts])
        await store.recall(ANA, "indexed?")
        async with as_keeper(_engine(store)) as connection:
            await connection.execute("ANALYZE" if analyzed else "SELECT 1")
            for filters in ([None] * 4, [None, ["note"], NOON - timedelta(days=9999), None]):
                for vector in (None, [1.0, 2.0]):
                    for _ in range(7):
                        read = await _reads(
                            connection, indexes, *_search(["3", "never"], vector, filters=filters)
                        )
                        # To count, to rank and to score; and to count, of both lexemes, the row of
                        # rare ones in which it could be.
                        assert read[0] <= 3 + 2
                        assert read[1] <= 300
                        assert read[2:] == [0, 0]


async def test_the_index_knows_in_how_many_events_each_lexeme_stands() -> None:
    bob = AgentId("writer", "bob")
    async with _opened() as store:

        async def known(agent: AgentId) -> dict[str, int]:
            found = await _postings(store)
            day = tokenize(day_words(NOON))
            return {
                lexeme: len(held)
                for (name, lexeme), held in found.items()
                if name == str(agent) and lexeme not in day
            }

        async def add(agent: AgentId, session: str, text: str) -> None:
            await store.append([Event(agent, session, "note", {"": text}, occurred_at=NOON)])

        for session, text in (("s1", "tide tide moon"), ("s1", "tide"), ("s2", "moon"), ("s2", "")):
            await add(ANA, session, text)
        await add(bob, "s1", "tide gull")
        assert await store.recall(ANA, "moon")
        assert await store.recall(bob, "gull")
        assert await known(ANA) == {"moon": 2, "tide": 2}
        assert await known(bob) == {"gull": 1, "tide": 1}
        await store.clear("s1", agent_id=ANA)
        assert await known(ANA) == {"moon": 1}
        assert await known(bob) == {"gull": 1, "tide": 1}
        await add(ANA, "s3", "tide")
        # What no index has taken in yet is cleared without a trace.
        await store.clear("s3")
        await store.clear("s2")
        assert await store.recall(ANA, "tide") == []
        assert await known(ANA) == {}
        await _checked(store)


async def test_the_counts_are_right_whoever_indexes_and_clears_at_the_same_time() -> None:
    agents = [AgentId("writer", name) for name in ("ana", "bob")]
    async with _opened(connections=6) as store:

        async def live(number: int) -> None:
            for at in range(12):
                agent, session = agents[(number + at) % 2], f"s{(number * 5 + at) % 4}"
                texts = [f"tide {at % 3} n{number}", f"moon moon {at}"]
                await store.append([Event(agent, session, "note", {"": text}) for text in texts])
                await store.recall(agent, "tide moon")
                if at % 3 == number % 3:
                    await store.clear(session, agent_id=agent if at % 2 else None)
                if at % 4 == number % 4:
                    await _merge(store, agent)

        await asyncio.gather(*map(live, range(6)))
        for agent in agents:
            await store.append([Event(agent, "last", "note", {"": "tide"})])
            there = {one.id for one in await store.recent(agent, limit=1000)}
            found = await store.recall(agent, "tide moon", limit=1000)
            assert {one.event.id for one in found} == there
        await _checked(store)
