"""Many writers, and a server that dies under them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.history import History
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.testing.postgres_server import PostgresServer
from holdfast.values.content import ChatMessage
from holdfast.values.errors import HoldfastError, TimedOutError, UnavailableError
from holdfast.values.identity import AgentId
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
WRITERS, EACH = 16, 500


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of this test's own, to be killed."""
    server = PostgresServer(18)
    server.start()
    yield server
    server.remove()


@pytest.mark.parametrize("sessions", [1, WRITERS])
async def test_16_writers_of_500_messages_leave_no_gap_and_lose_nothing(sessions: int) -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=WRITERS)
        history, episodes = (
            History(PostgresTranscripts(engine)),
            EpisodicMemory(PostgresEpisodes(engine)),
        )

        async def write(writer: int) -> None:
            for at in range(EACH):
                message = ChatMessage.user(f"{writer}.{at}")
                await history.append(ANA, message, session_id=f"s{writer % sessions}")
                if at % 50 == 0:
                    await history.append(ANA, message, session_id=f"s{writer % sessions}")

        await asyncio.gather(*map(write, range(WRITERS)))
        for session in range(sessions):
            found = await episodes.recent(ANA, session_id=f"s{session}", limit=WRITERS * EACH)
            expected = WRITERS * EACH // sessions
            assert [event.seq for event in found] == list(range(1, expected + 1))
            texts = [event.to_message().text for event in found]
            for writer in {int(text.split(".")[0]) for text in texts}:
                mine = [text for text in texts if text.startswith(f"{writer}.")]
                assert mine == [f"{writer}.{at}" for at in range(EACH)]
        await engine.aclose()


async def test_kill_9_of_postgres_under_load_loses_no_acknowledged_write_and_doubles_none(
    own_server: PostgresServer,
) -> None:
    engine = await Postgres.open(own_server.url(), auto_migrate=True, max_connections=8)
    history = History(PostgresTranscripts(engine))
    acknowledged: dict[str, list[str]] = {f"s{writer}": [] for writer in range(8)}
    stopped = asyncio.Event()
    failures = 0

    async def write(session: str) -> None:
        nonlocal failures
        number = 0
        while not stopped.is_set():
            message = ChatMessage.user(f"{number}")
            number += 1
            while True:
                try:
                    await history.append(ANA, message, session_id=session)
                except (UnavailableError, TimedOutError):
                    # What the error says: try again, with the same id.
                    failures += 1
                    await asyncio.sleep(0.05)
                else:
                    acknowledged[session].append(message.id)
                    break

    writers = [asyncio.create_task(write(session)) for session in acknowledged]
    for _ in range(3):
        count = sum(map(len, acknowledged.values()))
        while sum(map(len, acknowledged.values())) < count + 200:
            await asyncio.sleep(0.01)
        own_server.kill()
        await asyncio.sleep(random.random() / 5)  # noqa: S311 - any moment will do
        await asyncio.to_thread(own_server.start)
    count = sum(map(len, acknowledged.values()))
    while sum(map(len, acknowledged.values())) < count + 200:
        await asyncio.sleep(0.01)
    stopped.set()
    await asyncio.gather(*writers)

    for session, ids in acknowledged.items():
        stored = await history.get_messages(ANA, session_id=session)
        assert [one.id for one in stored] == ids
        assert [one.seq for one in stored] == list(range(1, len(ids) + 1))
    await engine.aclose()


async def test_a_statement_that_only_reads_survives_a_restart_unnoticed(
    own_server: PostgresServer,
) -> None:
    engine = await Postgres.open(own_server.url(), auto_migrate=True)
    history = History(PostgresTranscripts(engine))
    await history.append(ANA, ChatMessage.user("x"), session_id="s1")
    own_server.kill()
    own_server.start()
    assert await history.count_messages(ANA, session_id="s1") == 1
    await engine.aclose()


async def test_a_backend_killed_by_an_operator_is_replaced(own_server: PostgresServer) -> None:
    engine = await Postgres.open(own_server.url(), auto_migrate=True, max_connections=2)
    history = History(PostgresTranscripts(engine))
    for at in range(5):
        async with engine.connection(writes=False) as connection:
            pid = await connection.fetchval("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGTERM)
        await history.append(ANA, ChatMessage.user(f"{at}"), session_id="s1")
    assert await history.count_messages(ANA, session_id="s1") == 5
    await engine.aclose()


async def test_a_server_that_stays_away_is_a_clear_error(own_server: PostgresServer) -> None:
    engine = await Postgres.open(own_server.url(), auto_migrate=True)
    own_server.stop()
    with pytest.raises(HoldfastError) as caught:
        await History(PostgresTranscripts(engine)).count_messages(ANA, session_id="s1")
    assert isinstance(caught.value, UnavailableError)
    await engine.aclose()
