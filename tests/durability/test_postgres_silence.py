"""A wire to Postgres that falls silent for ever holds nobody up for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from holdfast.chaos.addresses import address_of, by_way_of
from holdfast.chaos.proxy import Proxy
from holdfast.engines.postgres import engine as engine_module
from holdfast.engines.postgres import listener as listener_module
from holdfast.engines.postgres.durable_queue import PostgresDurableQueue
from holdfast.engines.postgres.engine import Postgres
from holdfast.testing.postgres_server import PostgresServer
from holdfast.values.errors import EngineError, TimedOutError, UnavailableError

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PATIENCE_SECONDS = 2.0
"""How long an engine waits for an answer, where it is to be seen that it gives up."""
FOR_EVER = 3600.0
LIMIT_SECONDS = 60.0
"""What ends at all ends long before."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server on TCP, so that a proxy can stand before it."""
    found = PostgresServer(18)
    found.start()
    yield found
    found.remove()


class Line:
    """An engine, and the wires to its server."""

    def __init__(self, engine: Postgres, proxy: Proxy) -> None:
        self.engine = engine
        self._proxy = proxy
        self._silence: list[asyncio.Task[None]] = []
        self.silent = asyncio.Event()

    async def fall_silent(self) -> None:
        """The wires that there are pass nothing on, and nobody is told; new ones work."""
        silence = asyncio.create_task(self._proxy.silence(for_seconds=FOR_EVER))
        self._silence.append(silence)
        await asyncio.sleep(0)  # so that it has begun
        self.silent.set()

    async def close(self) -> None:
        """Leave nothing behind."""
        await self._proxy.cut()
        for silence in self._silence:
            silence.cancel()
        await asyncio.gather(*self._silence, return_exceptions=True)
        await self.engine.aclose()


@asynccontextmanager
async def _line(server: PostgresServer, *, patience: float = FOR_EVER) -> AsyncIterator[Line]:
    """An engine that reaches its server through a proxy."""
    url = server.url(tcp=True)
    await (await Postgres.open(url, auto_migrate=True)).aclose()
    address = address_of(url)
    assert not isinstance(address, str), address
    async with Proxy(*address).listening() as proxy:
        engine = await Postgres.open(by_way_of(url, proxy.port), command_timeout_seconds=patience)
        found = Line(engine, proxy)
        try:
            yield found
        finally:
            await found.close()


@pytest_asyncio.fixture(loop_scope="session")
async def line(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    """An engine that soon cuts what has no answer."""
    monkeypatch.setattr(engine_module, "_GRACE_SECONDS", 0)
    async with _line(server, patience=PATIENCE_SECONDS) as found:
        yield found


async def _in_a_statement(line: Line, connection: Any) -> None:
    await line.fall_silent()
    await connection.fetch("SELECT 1")


async def _in_a_begin(line: Line, connection: Any) -> None:
    await line.fall_silent()
    async with connection.transaction():
        pass


async def _in_a_commit(line: Line, connection: Any) -> None:
    async with connection.transaction():
        await line.fall_silent()


async def _in_a_rollback(line: Line, connection: Any) -> None:
    async with connection.transaction():
        await line.fall_silent()
        raise UnavailableError("this test", "so that it is rolled back")


async def _in_a_savepoint(line: Line, connection: Any) -> None:
    async with connection.transaction():
        await line.fall_silent()
        async with connection.transaction():
            pass


@pytest.mark.parametrize(
    "moment", [_in_a_statement, _in_a_begin, _in_a_commit, _in_a_rollback, _in_a_savepoint]
)
async def test_a_held_connection_without_an_answer_is_cut_and_others_work(
    line: Line, moment: Callable[[Line, Any], Awaitable[None]]
) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        with pytest.raises(EngineError):
            async with line.engine.connection(writes=True) as connection:
                await moment(line, connection)
        async with line.engine.connection(writes=False) as connection:
            assert await connection.fetchval("SELECT 7") == 7


async def test_a_connection_that_rests_between_statements_is_not_cut(line: Line) -> None:
    async with line.engine.connection(writes=False) as resting:
        assert await resting.fetchval("SELECT 7") == 7
        await line.engine.fetch_across("SELECT pg_sleep($1)", PATIENCE_SECONDS * 0.7, safe=True)
        await line.engine.fetch_across("SELECT pg_sleep($1)", PATIENCE_SECONDS * 0.7, safe=True)
        assert await resting.fetchval("SELECT 8") == 8


async def _ask_on_a_held_connection(line: Line) -> None:
    async with line.engine.connection(writes=True) as connection:
        await line.fall_silent()
        await connection.fetch("SELECT 1")


async def _ask_in_a_transaction(line: Line) -> None:
    async with line.engine.connection(writes=True) as connection, connection.transaction():
        await line.fall_silent()
        await connection.fetch("SELECT 1")


async def _ask_the_engine(line: Line) -> None:
    await line.engine.ping()
    await line.fall_silent()
    await line.engine.ping()


@pytest.mark.parametrize("ask", [_ask_on_a_held_connection, _ask_in_a_transaction, _ask_the_engine])
async def test_who_is_cancelled_in_a_silent_statement_ends_as_cancelled_long_before_it_is_cut(
    server: PostgresServer, ask: Callable[[Line], Coroutine[Any, Any, None]]
) -> None:
    async with _line(server) as line:
        task = asyncio.create_task(ask(line))
        await line.silent.wait()
        task.cancel()
        await asyncio.wait([task], timeout=LIMIT_SECONDS)
        assert task.cancelled()
        assert await line.engine.fetchval("SELECT 7, $1::text", "default", safe=True) == 7


async def test_closing_on_a_silent_wire_ends(server: PostgresServer) -> None:
    async with _line(server) as line:
        listener = line.engine.singleton(listener_module.Listener)
        with listener.bell("topic") as bell:
            while not listener.hears:
                await bell.wait(found=True)
            await line.fall_silent()
            async with asyncio.timeout(LIMIT_SECONDS):
                await line.engine.aclose()


async def _flush_in_silence(line: Line, queue: PostgresDurableQueue) -> None:
    async with queue.flushing("silence", 7) as flush:
        assert flush is not None
        await line.fall_silent()


async def test_a_flush_whose_wire_falls_silent_ends_and_the_next_has_the_shard(
    line: Line,
) -> None:
    queue = PostgresDurableQueue(line.engine)
    async with asyncio.timeout(LIMIT_SECONDS):
        with pytest.raises(TimedOutError):
            await _flush_in_silence(line, queue)
        held = False
        while not held:
            async with queue.flushing("silence", 7) as flush:
                held = flush is not None


async def test_a_listener_whose_wire_falls_silent_listens_again(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(listener_module, "ECHO_SECONDS", 0.5)
    listener = line.engine.singleton(listener_module.Listener)
    with listener.bell("topic") as bell:
        async with asyncio.timeout(LIMIT_SECONDS):
            for hears in (True, False, True):
                while listener.hears is not hears:
                    await bell.wait(found=True)
                if hears:
                    await line.fall_silent()
