"""Hot searches keep their plan: to make one for each call would cost more than the search."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.contracts.vectors import Vectors
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.vector import PostgresVectors
from holdfast.values.documents import Document
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId
from tests.engines.postgres_database import as_keeper, connected, empty_database, generic_plan

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = AgentId("test", "a1")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PLANNED_ANEW = 5
"""So often Postgres makes a plan for the parameters at hand before it thinks of keeping one."""


async def test_a_long_session_is_read_in_order_where_most_sessions_are_short() -> None:
    statements = [
        load("episodes")["recent_in_session"],
        load("episodes")["between_in_session"],
        load("history")["newest"],
        load("history")["page"],
        load("durable_log")["tail"],
    ]
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        episodes = EpisodicMemory(PostgresEpisodes(engine))
        await episodes.append([Event(AGENT, "long", "note", {"at": at}) for at in range(500)])
        await episodes.append([Event(AGENT, f"s{at}", "note", {"at": at}) for at in range(1500)])
        await engine.aclose()
        async with connected(url) as connection:
            await connection.execute("ANALYZE")
            for sql in statements:
                plan = await generic_plan(connection, sql)
                assert "using events_pkey" in plan, plan
                assert "Sort" not in plan, plan


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_search_without_filters_keeps_one_plan(*, analyzed: bool) -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        episodes, vectors = (
            EpisodicMemory(PostgresEpisodes(engine)),
            Vectors(PostgresVectors(engine)),
        )
        numbers = [[float(at % 7) + 1, float(at % 5), 1.0] for at in range(200)]
        for agent in range(5):
            events = [
                Event(AgentId("test", f"a{agent}"), f"s{agent}", "note", {"text": f"tide {at}"})
                for at in range(200)
            ]
            await episodes.append(events, embeddings=numbers)
            documents = [Document([], f"d{at}", vector, {}) for at, vector in enumerate(numbers)]
            await vectors.add(documents, collection=f"c{agent}")
        await episodes.recall(AGENT, "tide")
        if analyzed:
            async with as_keeper(engine) as connection:
                await connection.execute("ANALYZE")
        for at in range(2 * PLANNED_ANEW):
            await episodes.recall(AGENT, f"tide {at}", limit=at + 1)
            await episodes.recall(AGENT, [1.0, float(at), 2.0], limit=at + 1)
            await vectors.search([1.0, float(at), 2.0], limit=at + 1, collection="c1")
        async with as_keeper(engine) as connection:
            rows = await connection.fetch(
                "SELECT generic_plans, custom_plans, left(statement, 60) "
                "FROM pg_prepared_statements WHERE custom_plans > $1",
                PLANNED_ANEW,
            )
        await engine.aclose()
        assert [tuple(row) for row in rows] == []


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_search_by_words_keeps_one_plan_with_filters_and_without(*, analyzed: bool) -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        episodes = EpisodicMemory(PostgresEpisodes(engine))
        await episodes.append(
            [Event(AGENT, f"s{at % 3}", "note", {"text": f"tide {at % 99}"}) for at in range(3000)]
        )
        await episodes.recall(AGENT, "tide")
        if analyzed:
            async with as_keeper(engine) as connection:
                await connection.execute("ANALYZE")
        for at in range(2 * PLANNED_ANEW):
            question = " ".join(["tide", *map(str, range(at))])
            await episodes.recall(AGENT, question, limit=at + 1)
            await episodes.recall(AGENT, question, session_id="s1", types=["note"] * (at + 1))
        async with as_keeper(engine) as connection:
            rows = await connection.fetch(
                "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
                "WHERE statement LIKE $1",
                "%holdfast.search_events(%",
            )
        await engine.aclose()
        [(kept, anew)] = [tuple(row) for row in rows]
        assert kept >= 3 * PLANNED_ANEW
        assert anew <= PLANNED_ANEW


@asynccontextmanager
async def _crowd(*, analyzed: bool) -> AsyncIterator[tuple[Postgres, EpisodicMemory]]:
    """A log of 50 agents: the events of 20 owners, who took turns, and of nobody."""
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        episodes = EpisodicMemory(PostgresEpisodes(engine))
        for owner in ("", *(f"o{at}" for at in range(20))):
            front = episodes.for_owner(OwnerScope(owner)) if owner else episodes
            await front.append(
                [
                    Event(
                        *(AgentId("test", f"a{at % 50}"), f"s{at % 7}", "note", {"at": at}),
                        occurred_at=NOON + timedelta(minutes=at),
                    )
                    for at in range(150)
                ]
            )
        if analyzed:
            async with connected(url) as connection:
                await connection.execute("ANALYZE")
        yield engine, episodes
        await engine.aclose()


async def _events_read(engine: Postgres, ask: Any) -> int:
    """How many events a question reads, by an index or one after the other."""
    counted = (
        "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::int FROM pg_class c "
        "WHERE c.oid = 'holdfast.events'::regclass OR c.oid IN ("
        "SELECT indexrelid FROM pg_index WHERE indrelid = 'holdfast.events'::regclass)"
    )
    tenant = engine.connection(writes=True, tenant="default")
    async with tenant as connection, connection.transaction():
        found: list[tuple[Any, ...]] = []

        async def search(sql: str, *args: Any, **_how: Any) -> Any:
            before = await connection.bare.fetchval(counted)
            rows = await connection.fetch(sql, *args)
            found.append((await connection.bare.fetchval(counted) - before,))
            return rows

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(engine, "search", search)
            patched.setattr(engine, "fetch", search)
            await ask()
    [(read,)] = found
    return int(read)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_all_agents_are_read_by_an_index_and_no_further_than_asked(*, analyzed: bool) -> None:
    async with _crowd(analyzed=analyzed) as (engine, episodes):
        owned = episodes.for_owner(OwnerScope("o7"))
        late = (NOON + timedelta(minutes=140), NOON + timedelta(days=1))
        ever = (NOON, NOON + timedelta(days=1))
        questions: list[tuple[str, tuple[datetime, ...], dict[str, Any], int, int]] = [
            ("recent", (), {"limit": 5}, 5, 1),
            ("between", late, {}, 0, 10),
            ("between", ever, {"limit": 5}, 5, 1),
        ]
        if analyzed:
            # Until a table has statistics, whatever is filtered is expected to be small.
            questions.append(("recent", (), {"limit": 3, "where": {"at": {"$gte": 145}}}, 3, 1))
        # At each time there is an event of every owner, and of nobody.
        for front, at_once in ((episodes.any_owner(), 21), (owned, 1)):
            for name, span, how, limit, times in questions:
                ask = functools.partial(getattr(front, name), ALL_AGENTS, *span, **how)
                for _ in range(2 * PLANNED_ANEW):
                    assert await _events_read(engine, ask) <= limit + times * at_once + 1, name


async def test_agents_are_listed_without_reading_all_their_events() -> None:
    async with _crowd(analyzed=False) as (engine, _):

        async def listed() -> None:
            rows = await engine.search(
                "SELECT * FROM holdfast.agents_with_events($1, '', $2, 101)",
                *("default", "holdfast.owner:"),
            )
            assert len(rows) == 50

        # 51 looks into the index, and one over the names of all owners.
        assert await _events_read(engine, listed) <= 53
