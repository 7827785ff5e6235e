"""``holdfast bench hybrid``: agents on Redis, on Postgres, on both, and on an article's sample.

All contestants work on the same two servers with the same turns and questions, in alternating
blocks, so that noise of the machine affects all of them. In a closed loop every agent asks again as
soon as it has its answer; paced, it asks ten times a second, as an agent that polls its state does.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from holdfast.bench.hybrid_article import Article
from holdfast.bench.hybrid_report import Answers, Report, Space
from holdfast.bench.hybrid_wirings import Wiring
from holdfast.bench.hybrid_workload import Workload, made
from holdfast.bench.servers import Servers, settle, started

Times: TypeAlias = dict[str, list[float]]

MIX = ("hot",) * 7 + ("episodic",) * 2 + ("semantic",)
"""The mix of an agent's operations: mostly it reads its task, sometimes older events."""

LARGE_BYTES = 1_000_000
"""Tables above this size are reported by name."""


class Contestant(Protocol):
    """The operations that each contestant implements."""

    name: str
    cannot: dict[str, str]

    async def open(self, servers: Servers, dimension: int) -> str:
        """Connect. Returns the URL of its database, or ``""`` if it has none."""

    async def load(self, workload: Workload) -> None:
        """Store all turns of a workload."""

    async def hot(self, agent: int) -> Any:
        """Return the agent's current task."""

    async def save(self, agent: int, number: int) -> None:
        """Store another current task."""

    async def episodic(self, agent: int) -> list[int]:
        """Return the newest ten turns."""

    async def semantic(self, agent: int, vector: list[float]) -> list[int]:
        """Return the nearest five turns."""

    async def record(self, agent: int, number: int) -> None:
        """Store one more turn."""

    async def settle(self) -> None:
        """Wait until all background work that the writes caused is done."""

    async def plan(self, vector: list[float]) -> str:
        """Return the query plan by which its database answers a question."""

    async def close(self) -> None:
        """Disconnect."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    agents: int = 50
    turns: int = 500
    dimension: int = 256
    rounds: int = 10
    mixes: int = 2
    """How often an agent repeats its mix of operations in a block."""

    period_seconds: float = 0.1
    """The seconds between two operations of a paced agent."""

    @classmethod
    def quick(cls) -> Size:
        """Return a size that takes seconds instead of minutes."""
        return cls(turns=50, dimension=64, rounds=1, mixes=1)


def contestants() -> list[Contestant]:
    """Return the three wirings and the article's sample."""
    return [
        Wiring("redis only", postgres=False, redis=True),
        Wiring("postgres only", postgres=True, redis=False),
        Wiring("hybrid", postgres=True, redis=True),
        Article(),
    ]


async def run(progress: Callable[[str], None], *, size: Size | None = None) -> Report:
    """Start both servers, load every contestant, and measure them in alternation.

    ::

        report = await run(print, size=Size.quick())
    """
    size = size or Size()
    progress("making up agents")
    workload = await asyncio.to_thread(made, size.agents, size.turns, size.dimension)
    report = Report(size.agents, size.turns, size.dimension, size.rounds)
    async with started() as servers:
        playing = contestants()
        try:
            for one in playing:
                progress(f"{one.name}: loading")
                report.space[one.name] = await _loaded(one, servers, workload)
                report.cannot[one.name] = dict(one.cannot)
                report.answers[one.name] = Answers()
                report.plans[one.name] = await one.plan(workload.questions[0][0].vector)
            await _rounds(progress, playing, workload, report, size)
        finally:
            for one in playing:
                await one.close()
    return report


async def _loaded(one: Contestant, servers: Servers, workload: Workload) -> Space:
    url = await one.open(servers, len(workload.questions[0][0].vector))
    empty = sum((await servers.table_bytes(url)).values()) if url else 0
    before = await servers.valkey_bytes()
    start = time.perf_counter()
    await one.load(workload)
    seconds = time.perf_counter() - start
    if url:
        await settle(url)
    tables = await servers.table_bytes(url) if url else {}
    return Space(
        redis_bytes=max(0, await servers.valkey_bytes() - before),
        postgres_bytes=sum(tables.values()) - empty,
        tables={name: size for name, size in tables.items() if size > LARGE_BYTES},
        load_seconds=round(seconds, 1),
    )


async def _rounds(
    progress: Callable[[str], None],
    playing: Sequence[Contestant],
    workload: Workload,
    report: Report,
    size: Size,
) -> None:
    times: dict[str, dict[str, Times]] = defaultdict(dict)
    for at in range(report.rounds + 1):
        for load, block in (("closed", _closed), ("paced", _paced), ("writes", _writes)):
            progress(f"round {at} of {report.rounds}: {load}")
            for one in playing if at % 2 else reversed(playing):
                answers = report.answers[one.name] if at else Answers()
                turn = _Turn(one, workload, at, answers, size)
                await block(turn)
                # The first round of each is a warm-up.
                for operation, taken in turn.times.items() if at else ():
                    kept = times[load].setdefault(one.name, defaultdict(list))
                    kept[operation] += taken
    for load, by_name in times.items():
        for name, by_operation in by_name.items():
            for operation, taken in by_operation.items():
                report.add(load, name, operation, taken)


class _Turn:
    """One block of operations of one contestant."""

    def __init__(
        self, one: Contestant, workload: Workload, at: int, answers: Answers, size: Size
    ) -> None:
        self.one = one
        self.size = size
        self._todo = MIX * size.mixes
        self.workload = workload
        self.at = at
        self.answers = answers
        self.times: Times = defaultdict(list)

    def mix(self, agent: int) -> list[str]:
        """Return what an agent does in this block, in the same order for all contestants."""
        todo = list(self._todo)
        random.Random(self.at * 1000 + agent).shuffle(todo)  # noqa: S311 - the same each time
        return [name for name in todo if name not in self.one.cannot]

    async def ask(self, agent: int, operation: str, number: int) -> None:
        """Make one timed call. Its answer is judged after the time is taken."""
        if operation != "semantic":
            calls: dict[str, Callable[[int], Awaitable[Any]]] = {
                "hot": self.one.hot,
                "episodic": self.one.episodic,
            }
            start = time.perf_counter()
            found = await calls[operation](agent)
            self.times[operation].append(time.perf_counter() - start)
            if operation == "episodic":
                self.answers.episodic_rows.append(len(found))
            return
        asked = self.workload.questions[agent]
        question = asked[(self.at * len(self._todo) + number) % len(asked)]
        start = time.perf_counter()
        found = await self.one.semantic(agent, question.vector)
        self.times[operation].append(time.perf_counter() - start)
        self.answers.judge(question, found)

    async def write(self, agent: int, operation: str, number: int) -> None:
        """Make one timed write."""
        call = self.one.save if operation == "save" else self.one.record
        start = time.perf_counter()
        await call(agent, number)
        self.times[operation].append(time.perf_counter() - start)


async def _closed(turn: _Turn) -> None:
    async def agent(number: int) -> None:
        for at, operation in enumerate(turn.mix(number)):
            await turn.ask(number, operation, at)

    await asyncio.gather(*(agent(number) for number in range(turn.workload.agents)))


async def _paced(turn: _Turn) -> None:
    clock = asyncio.get_running_loop().time
    begin = clock() + 0.01

    async def agent(number: int) -> None:
        due = begin + turn.size.period_seconds * number / turn.workload.agents
        for at, operation in enumerate(turn.mix(number)):
            await asyncio.sleep(due - clock())
            turn.times["late"].append(max(0.0, clock() - due))
            await turn.ask(number, operation, at)
            due += turn.size.period_seconds

    await asyncio.gather(*(agent(number) for number in range(turn.workload.agents)))


async def _writes(turn: _Turn) -> None:
    """Make five of each write in a closed loop, and wait for the background work they cause."""
    for operation in ("save", "record"):
        if operation not in turn.one.cannot:

            async def agent(number: int, operation: str = operation) -> None:
                for at in range(5):
                    await turn.write(number, operation, (turn.at * 5 + at) * 1000 + number)

            await asyncio.gather(*(agent(number) for number in range(turn.workload.agents)))
    await turn.one.settle()
