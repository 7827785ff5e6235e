"""``holdfast bench growth``: the cost of a call as sessions, agents and collections grow.

The slope of a row is that of the line through the logarithms of size and cost: 0 is constant cost,
1 is proportional to the size. It takes minutes, so it is not part of ``holdfast bench all``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from holdfast.bench.growth_recall import TurnsGrown, grow_turns
from holdfast.bench.growth_rows import CALLS, Operation, Rows, measured
from holdfast.bench.hybrid_workload import Array, K, nearest, share
from holdfast.bench.servers import Servers, started
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.values.documents import Document
from holdfast.wiring.admin import Administration
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

Progress: TypeAlias = Callable[[str], None]

BATCH = 1000
ABREAST = 20
"""How many agents start at the same time."""

EVENTS_OF_AGENT = 20
DIMENSION = 64
FEW = 200
"""At a small size, several instances are measured, since each call makes an instance larger."""


@dataclass(slots=True)
class Report(Rows):
    """All rows of the benchmark, and how long it took."""

    fidelity: list[dict[str, float]] = field(default_factory=list)
    """The share of the true nearest documents that a search in a collection finds, at each size."""

    turns: TurnsGrown = field(default_factory=TurnsGrown)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "fidelity_5": self.fidelity,
            "turns": self.turns.points,
            "bars": self.turns.bars(self),
            "seconds": self.seconds,
        }


async def run(
    progress: Progress, *, events: int, agents: int, vectors: int, turns: int = 0, crowd: int = 0
) -> Report:
    """Grow each quantity tenfold up to its argument; 0 skips it.

    ``crowd`` is how many vectors other agents have, in addition to the agent with many turns.

    ::

        report = await run(print, events=1000, agents=100, vectors=0)
    """
    report = Report()
    start = time.perf_counter()
    async with started() as servers, AsyncExitStack() as open_states:
        url = await servers.database("growth")
        states = {
            "postgres only": await open_states.enter_async_context(_opened(url, "postgres")),
            "hybrid": await open_states.enter_async_context(_opened(url, "hybrid", servers)),
        }
        for size in _sizes(10, events):
            for wiring, state in states.items():
                progress(f"sessions of {size:,} events: {wiring}")
                await _sessions(report, wiring, state, size)
        for last, size in _steps(10, agents):
            for wiring, state in states.items():
                progress(f"{size:,} agents: {wiring}")
                await _agents(report, wiring, state, last, size)
        table: Array = np.zeros((0, DIMENSION), dtype=np.float32)
        for _, size in _steps(1000, vectors):
            progress(f"a collection of {size:,} vectors")
            table = await _collection(report, states["postgres only"], url, table, size)
        if turns:
            progress(f"one agent of up to {turns:,} turns")
            report.turns = await grow_turns(
                report, await servers.database("turns"), turns, crowd=crowd
            )
    report.seconds = round(time.perf_counter() - start, 1)
    return report


@asynccontextmanager
async def _opened(url: str, tenant: str, servers: Servers | None = None) -> AsyncIterator[State]:
    redis = servers.valkey if servers else None
    settings = Settings(auto_migrate=True, search_timeout_seconds=60)
    async with open_state(url, redis=redis, tenant=tenant, settings=settings) as state:
        yield state


def _sizes(first: int, most: int) -> Iterator[int]:
    while first <= most:
        yield first
        first *= 10


def _steps(first: int, most: int) -> Iterator[tuple[int, int]]:
    last = 0
    for size in _sizes(first, most):
        yield last, size
        last = size


async def _sessions(report: Report, wiring: str, state: State, size: int) -> None:
    """Measure sessions of one length, each of a different agent."""
    copies = max(1, FEW // size)
    memories = []
    for copy in range(copies):
        memory = state.memory(f"grown/{size}-{copy}", session_id=f"grown-{size}-{copy}")
        for start in range(0, size, BATCH):
            count = min(BATCH, size - start)
            await memory.record_many([("note", _note(start + at)) for at in range(count)])
        await memory.state.set({"current_task": "x"})
        await memory.recall("settled?", 1)
        memories.append(memory)
    await _settled(state)
    calls = max(20, min(CALLS, copies * size // 5))
    await measured(report, ("events of a session", wiring), size, _operations(memories), calls)


async def _agents(report: Report, wiring: str, state: State, last: int, size: int) -> None:
    """Add agents, each with a short session, and measure."""
    memories = [state.memory(f"one/{at}", session_id=f"one-{at}") for at in range(size)]

    async def begin(at: int) -> None:
        notes = [("note", _note(at + number)) for number in range(EVENTS_OF_AGENT)]
        await memories[at].record_many(notes)
        await memories[at].state.set({"current_task": "x"})

    for start in range(last, size, ABREAST):
        await asyncio.gather(*map(begin, range(start, min(start + ABREAST, size))))
    await _settled(state)
    # Spread over all of them, in an order that no cache foresees.
    order = np.random.default_rng(size).permutation(size)
    spread = [memories[at] for at in order.tolist()][: CALLS * 2]
    for memory in spread:
        await memory.recall("settled?", 1)
    await measured(report, ("agents", wiring), size, _operations(spread), CALLS)


def _operations(memories: list[AgentMemory]) -> dict[str, Operation]:
    def of(at: int) -> AgentMemory:
        return memories[at % len(memories)]

    return {
        "read the current task": lambda at: of(at).state.get(keys=["current_task"]),
        "the newest 20 events": lambda at: of(at).recent(20),
        "recall 5 by words": lambda at: of(at).recall(f"harbour{at % 97} and ship{at % 31}", 5),
        "record": lambda at: of(at).record("note", _note(at)),
    }


async def _collection(report: Report, state: State, url: str, table: Array, size: int) -> Array:
    """Add documents to one collection, index it as ``holdfast db maintain`` does, and measure."""
    rng = np.random.default_rng(size)
    more = rng.normal(size=(size - len(table), DIMENSION)).astype(np.float32)
    for start in range(0, len(more), BATCH):
        part = more[start : start + BATCH].tolist()
        first = len(table) + start
        documents = [Document([], str(first + at), vector) for at, vector in enumerate(part)]
        await state.vectors.add(documents, collection="grown")
    table = np.concatenate([table, more])
    admin = await Administration.open(Settings(database_url=url))
    try:
        for job in admin.jobs().values():
            await job()
    finally:
        await admin.aclose()
    asked = rng.normal(size=(CALLS + 5, DIMENSION)).astype(np.float32)
    answers: dict[int, list[int]] = {}

    async def search(at: int) -> None:
        found = await state.vectors.search(asked[at].tolist(), collection="grown", limit=K)
        answers[at] = [int(one.id) for one in found]

    operations: dict[str, Operation] = {
        f"the nearest {K} documents": search,
        "get a document": lambda at: state.vectors.get([str(at)], collection="grown"),
    }
    await measured(report, ("documents of a collection", "postgres only"), size, operations, CALLS)
    shares = [share(found, nearest(table, asked[at])) for at, found in answers.items()]
    report.fidelity.append({"size": size, "fidelity_5": round(float(np.mean(shares)), 4)})
    return table


async def _settled(state: State) -> None:
    if await state.ops.pending_events():
        await state.ops.hybrid.consolidator.drain()


def _note(at: int) -> dict[str, Any]:
    return {"text": f"event {at} about harbour{at % 97} and ship{at % 31} at tide {at % 7}"}
