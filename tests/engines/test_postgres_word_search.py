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
from holdfast.engines.postgres.event_scope import narrowed
from holdfast.engines.postgres.queries import load
from holdfast.values.event_text import event_text
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.ranking import K1, B, idf, saturation
from holdfast.values.text import tokenize
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
WORDS = ["".join(letters) for letters in product("bdfgk", "ao", "lmnrt", "ao", "mpk")]
OFTEN = list(accumulate(1 / (rank + 1) for rank in range(len(WORDS))))
TYPES = ("note", "decision", "call")


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
        self._counts = [Counter(tokenize(event_text(one.type, one.payload))) for one in events]
        self._lengths = [one.total() for one in self._counts]
        self._average = sum(self._lengths) / len(events)
        self._holding = Counter(lexeme for one in self._counts for lexeme in one)

    def recall(
        self, question: str, filters: dict[str, Any]
    ) -> list[tuple[str, float, dict[str, float]]]:
        """Ids, scores and what the words gave, the best first."""
        lexemes = list(dict.fromkeys(tokenize(question)))
        found = {}
        for event, words, length in zip(self._events, self._counts, self._lengths, strict=True):
            score = 0.0
            for lexeme in lexemes:
                if times := words.get(lexeme):
                    rare = idf(len(self._events), self._holding[lexeme])
                    score += rare * saturation(times, length, self._average)
            if score and _fits(event, **filters):
                found[event.id] = score
        best = max(found.values(), default=1.0)
        ranked = sorted(found, key=lambda one: (-found[one] / best, one))
        return [(one, found[one] / best, {"lexical": found[one]}) for one in ranked]


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


async def _miscounted(store: EpisodicMemory) -> list[Any]:
    """The lexemes that stand in another number of events than the index says."""
    async with _engine(store).connection(writes=False) as connection:
        rows: list[Any] = await connection.fetch(
            "SELECT agent, lexeme, l.documents, p.documents, most, times "
            "FROM holdfast.event_lexemes l FULL JOIN ("
            "SELECT tenant, agent, lexeme, count(*) AS documents, max(times) AS times "
            "FROM holdfast.event_postings GROUP BY 1, 2, 3) p USING (tenant, agent, lexeme) "
            "WHERE l.documents IS DISTINCT FROM p.documents OR most < times"
        )
    return rows


async def _postings_read(store: EpisodicMemory, question: str) -> tuple[int, int]:
    """How many postings a search reads or looks up, and how many its lexemes have."""
    lexemes = list(dict.fromkeys(tokenize(question)))
    whose = ("default", str(ANA), lexemes)
    async with _engine(store).connection(writes=False) as connection:
        [read] = await _reads(
            *(connection, ["event_postings_pkey"], load("recall")["search_words"]),
            *(*whose, 5, *[None] * 7, K1, B),
        )
        held = await connection.fetchval(
            "SELECT sum(documents)::int FROM holdfast.event_lexemes WHERE lexeme = ANY ($1)",
            lexemes,
        )
    return read, held or 0


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


@pytest.mark.parametrize(
    ("seed", "work_mem", "major"), [(1, "4MB", 18), (2, "64kB", 18), (3, "4MB", 16)]
)
async def test_a_search_finds_what_reading_everything_finds_to_the_last_bit(
    seed: int, work_mem: str, major: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same every time
    async with _opened(work_mem=work_mem, major=major) as store:
        events: list[Event] = []
        pruned = 0
        for cleared in (None, "s1", "s4"):
            added = _random_events(rng, 900)
            await store.append(added)
            events += added
            if cleared:
                kinds = rng.choice([None, ["note"]])
                await store.clear(cleared, types=kinds)
                events = [
                    one
                    for one in events
                    if one.session_id != cleared or (kinds and one.type not in kinds)
                ]
            everything = _Everything(events)
            for _ in range(40):
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
                wanted = everything.recall(question, filters)
                for limit in (0, 1, 5, 50):
                    found = await store.recall(ANA, question, limit=limit, **filters)
                    told = [(one.event.id, one.score, one.scores) for one in found]
                    assert told == wanted[:limit]
                read, held = await _postings_read(store, question)
                pruned += read < held
        assert pruned > 5
        assert await _miscounted(store) == []


async def test_what_a_search_reads_does_not_grow_with_common_words() -> None:
    reads = {}
    for size in (500, 5000):
        async with _opened() as store:
            texts = [
                f"tide {'ship' if at % 2 else 'moon'} {'harbour' if at % 3 else 'gull'} n{at}"
                for at in range(size)
            ]
            for at in range(20):
                texts[at * (size // 20 | 1)] += " quokka"
            await store.append([Event(ANA, "s1", "note", {"text": text}) for text in texts])
            await store.recall(ANA, "indexed?")
            reads[size], held = await _postings_read(store, "tide ship harbour quokka")
            assert held > 2 * size
    assert 20 <= reads[500] < 200
    assert reads[5000] < 1.5 * reads[500]


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_search_looks_up_by_keys_also_while_tables_have_no_statistics(
    *, analyzed: bool
) -> None:
    indexes = ["event_postings_pkey", "event_lexemes_pkey", "events_by_id", "events_of_agent"]
    sql = load("recall")
    async with _opened() as store:
        texts = [f"tide {at % 10} n{at}" for at in range(1000)]
        await store.append([Event(ANA, "s1", "note", {"text": text}) for text in texts])
        await store.recall(ANA, "indexed?")
        whose = ("default", str(ANA), ["3", "never"])
        async with _engine(store).connection(writes=True) as connection:
            await connection.execute("ANALYZE" if analyzed else "SELECT 1")
            for filters in ([None] * 4, [None, ["note"], NOON - timedelta(days=9999), None]):
                words = (sql["search_words"], *whose, 5, *filters, *[None] * 3, K1, B)
                both = (narrowed(sql["search"], *filters), *whose, [1.0, 2.0], 5, *filters, K1, B)
                both = (*both, 0.6, "m", *[None] * 3)
                for _ in range(7):
                    assert await _reads(connection, indexes, *words) == [100, 1, 0, 0]
                    assert await _reads(connection, indexes, *both) == [100, 1, 0, 0]


async def test_the_index_knows_in_how_many_events_each_lexeme_stands() -> None:
    counted = (
        "SELECT lexeme, documents, most FROM holdfast.event_lexemes WHERE tenant = 'default' "
        "AND agent = $1 ORDER BY 1"
    )
    bob = AgentId("writer", "bob")
    async with _opened() as store:

        async def known(agent: AgentId) -> list[tuple[Any, ...]]:
            async with _engine(store).connection(writes=False) as connection:
                return [tuple(row) for row in await connection.fetch(counted, str(agent))]

        notes = [("s1", "tide tide moon"), ("s1", "tide"), ("s2", "moon"), ("s2", "")]
        await store.append([Event(ANA, where, "note", {"": text}) for where, text in notes])
        await store.append([Event(bob, "s1", "note", {"": "tide gull"})])
        assert await store.recall(ANA, "moon")
        assert await store.recall(bob, "gull")
        assert await known(ANA) == [("moon", 2, 1), ("tide", 2, 2)]
        assert await known(bob) == [("gull", 1, 1), ("tide", 1, 1)]
        await store.clear("s1", agent_id=ANA)
        assert await known(ANA) == [("moon", 1, 1)]
        assert await known(bob) == [("gull", 1, 1), ("tide", 1, 1)]
        await store.append([Event(ANA, "s3", "note", {"": "tide"})])
        # What no index has taken in yet is cleared without a trace.
        await store.clear("s3")
        await store.clear("s2")
        assert await store.recall(ANA, "tide") == []
        assert await known(ANA) == []


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

        await asyncio.gather(*map(live, range(6)))
        for agent in agents:
            await store.append([Event(agent, "last", "note", {"": "tide"})])
            there = {one.id for one in await store.recent(agent, limit=1000)}
            found = await store.recall(agent, "tide moon", limit=1000)
            assert {one.event.id for one in found} == there
        assert await _miscounted(store) == []
