"""``holdfast bench stores``: an agent's memory over Redis and Postgres, beside bare drivers."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.bench.contest import Contest, Result, measure
from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

RECORD, GET = "memory record at hot", "memory state get"
BARS = {RECORD: 1.5, GET: 1.2}
CONSOLIDATE = "consolidate one event (floor: 5,000 a second)"
FLOOR_MICROSECONDS = 1e6 / 5000
SESSIONS = 8


class Memories:
    """The memory of an agent in some sessions that are loaded in Redis.

    ::

        memories = await Memories.of(state, "the tide is low")
    """

    def __init__(self, memories: list[AgentMemory], body: str) -> None:
        self._memories = memories
        self._payload = {"text": body}

    @classmethod
    async def of(cls, state: State, body: str) -> Memories:
        """Record one event in each session, and a state."""
        memories = [state.memory("bench/a1", session_id=f"m{at}") for at in range(SESSIONS)]
        for one in memories:
            await one.record("note", {"text": body})
            await one.state.set({"current_task": "x", "other": "y"})
        return cls(memories, body)

    def ours(self) -> dict[str, Callable[[int], Any]]:
        """Return the operations by name."""
        return {
            RECORD: lambda n: self._memories[n % SESSIONS].record("note", self._payload),
            GET: lambda n: self._memories[n % SESSIONS].state.get(keys=["current_task"]),
        }


async def memory_rows(
    valkey: Path,
    floors: dict[str, Callable[[int], Any]],
    body: str,
    progress: Callable[[str], None],
    *,
    blocks: int,
) -> list[Result]:
    """Measure on the Valkey of a socket, and on a Postgres that it starts.

    ::

        rows = await memory_rows(path, floors, BODY, print, blocks=60)
    """
    folder = valkey.parent / "memory"
    folder.mkdir()
    os.chmod(folder, 0o711)  # noqa: PTH101, S103 - the server may run as another user
    embedded = await EmbeddedPostgres.open(folder / "state")
    try:
        trips = await _count_round_trips(embedded.url, valkey, folder / "proxy", body)
        async with _state(embedded.url, valkey) as state:
            memories = await Memories.of(state, body)
            results = []
            for name, call in memories.ours().items():
                progress(name)
                contest = Contest(name, call, floors[name], BARS[name], blocks=blocks, block=50)
                results.append(await measure(contest, trips[name]))
            progress("consolidation")
            return [*results, await _consolidation(state, body, events=blocks * 250)]
    finally:
        await embedded.aclose()


@asynccontextmanager
async def _state(postgres: str, valkey: Path) -> AsyncIterator[State]:
    settings = Settings(ack_level="hot", auto_migrate=True, background=False, tenant="bench")
    async with open_state(postgres, redis=f"unix://{valkey}", settings=settings) as state:
        yield state


async def _consolidation(state: State, body: str, *, events: int) -> Result:
    """Measure how long one of many waiting events takes on its way to Postgres."""
    consolidator = state.ops.hybrid.consolidator
    await consolidator.drain()
    for start in range(0, events, 500):
        memory = state.memory("bench/a2", session_id=f"c{start}")
        await memory.record_many([("note", {"text": body})] * min(500, events - start))
    begun = time.perf_counter()
    await consolidator.drain()
    each = round((time.perf_counter() - begun) / events * 1e6, 1)
    return Result(
        CONSOLIDATE,
        *(each, each, FLOOR_MICROSECONDS, FLOOR_MICROSECONDS),
        ratio=round(each / FLOOR_MICROSECONDS, 2),
        bar=1.0,
        round_trips=0.0,
    )


async def _count_round_trips(
    postgres: str, valkey: Path, proxy: Path, body: str
) -> dict[str, float]:
    """Count the round trips to Redis of one call of each operation, after a warm-up."""
    counter = RoundTrips()
    found = {}
    async with counter.between(proxy, valkey), _state(postgres, proxy) as state:
        for name, call in (await Memories.of(state, body)).ours().items():
            await call(0)
            before = counter.count
            await call(0)
            found[name] = float(counter.count - before)
    return found
