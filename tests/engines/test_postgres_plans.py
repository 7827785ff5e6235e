"""Hot searches keep their plan: to make one for each call would cost more than the search."""

from __future__ import annotations

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.vectors import Vectors
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.vector import PostgresVectors
from holdfast.values.documents import Document
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = AgentId("test", "a1")
PLANNED_ANEW = 5
"""So often Postgres makes a plan for the parameters at hand before it thinks of keeping one."""


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
            async with engine.connection(writes=True) as connection:
                await connection.execute("ANALYZE")
        for at in range(2 * PLANNED_ANEW):
            await episodes.recall(AGENT, f"tide {at}", limit=at + 1)
            await episodes.recall(AGENT, [1.0, float(at), 2.0], limit=at + 1)
            await vectors.search([1.0, float(at), 2.0], limit=at + 1, collection="c1")
        async with engine.connection(writes=False) as connection:
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
            async with engine.connection(writes=True) as connection:
                await connection.execute("ANALYZE")
        for at in range(2 * PLANNED_ANEW):
            question = " ".join(["tide", *map(str, range(at))])
            await episodes.recall(AGENT, question, limit=at + 1)
            await episodes.recall(AGENT, question, session_id="s1", types=["note"] * (at + 1))
        async with engine.connection(writes=False) as connection:
            rows = await connection.fetch(
                "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
                "WHERE statement LIKE $1",
                "%holdfast.search_words(%",
            )
        await engine.aclose()
        [(kept, anew)] = [tuple(row) for row in rows]
        assert kept >= 3 * PLANNED_ANEW
        assert anew <= PLANNED_ANEW
