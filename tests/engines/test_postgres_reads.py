"""Reads of the session log keep their plan and read what they return, however long it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.history import History
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.values.content import ChatMessage
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
PLANNED_ANEW = 5
"""So often Postgres makes a plan for the parameters at hand before it thinks of keeping one."""
MANY, FEW = AgentId("test", "many"), AgentId("test", "few")
START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


async def test_reads_of_long_sessions_keep_one_plan_for_agents_that_say_much_and_little() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        history, episodes = (
            History(PostgresTranscripts(engine)),
            EpisodicMemory(PostgresEpisodes(engine)),
        )
        for session in range(4):
            await history.append_many(
                MANY,
                [ChatMessage.user(f"tide {at}") for at in range(1500)],
                session_id=f"s{session}",
            )
            await history.append(FEW, ChatMessage.user("ebb"), session_id=f"s{session}")
        async with as_keeper(engine) as connection:
            await connection.execute("ANALYZE")
        for at in range(2 * PLANNED_ANEW):
            agent, session_id = (MANY, FEW)[at % 2], f"s{at % 4}"
            await history.get_messages(agent, session_id=session_id, recent_limit=at + 1)
            await history.get_messages(agent, session_id=session_id, limit=at + 1, offset=at)
            await episodes.recent(agent, limit=at + 1)
            await episodes.recent(agent, limit=at + 1, session_id=session_id)
            span = (START - 3650 * DAY, START + 3650 * DAY)
            await episodes.between(agent, *span, session_id=session_id, limit=at + 1)
        async with as_keeper(engine) as connection:
            rows = await connection.fetch(
                "SELECT custom_plans, left(statement, 60) "
                "FROM pg_prepared_statements WHERE custom_plans > $1",
                PLANNED_ANEW,
            )
        await engine.aclose()
        assert [tuple(row) for row in rows] == []


async def test_the_newest_events_of_one_time_are_those_of_the_last_sessions() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        episodes = EpisodicMemory(PostgresEpisodes(engine))
        for session in ("s2", "s1", "s3"):
            events = [
                Event(MANY, session, "note", {}, id=f"{session}.{at}", occurred_at=START)
                for at in range(3)
            ]
            await episodes.append(events)
        found = await episodes.recent(MANY, limit=4)
        assert [event.id for event in found] == ["s2.2", "s3.0", "s3.1", "s3.2"]
        await engine.aclose()
