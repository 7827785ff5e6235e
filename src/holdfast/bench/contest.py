"""Measures two implementations in alternation, so that noise of the machine affects both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

Call: TypeAlias = Callable[[int], Awaitable[Any]]
"""One call; its argument is a number that no other call of the run gets."""


@dataclass(frozen=True, slots=True)
class Contest:
    """One operation: Holdfast's call, the bare driver's (the floor), and how often each runs."""

    name: str
    ours: Call
    floor: Call
    bar: float
    blocks: int = 30
    block: int = 20
    lent: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
    """Entered while a block of the bare driver runs: lends it the connection of Holdfast."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a contest, in microseconds per call."""

    name: str
    ours_p50: float
    ours_p95: float
    floor_p50: float
    floor_p95: float
    ratio: float
    bar: float
    round_trips: float

    @property
    def met(self) -> bool:
        """Whether the ratio is at most the target."""
        return self.ratio <= self.bar

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return asdict(self) | {"met": self.met}


async def take_turns(contest: Contest) -> tuple[list[float], list[float]]:
    """Run blocks of both calls in alternation. Returns microseconds per call, of each.

    The first block of each is a warm-up and is left out.

    ::

        ours, floor = await take_turns(Contest("append", ours_call, floor_call, bar=1.5))
    """
    ours: list[float] = []
    floor: list[float] = []
    number = 0
    for at in range(contest.blocks + 1):
        sides = ((contest.ours, ours, nullcontext), (contest.floor, floor, contest.lent))
        for call, times, scope in sides if at % 2 else sides[::-1]:
            async with scope():
                for _ in range(contest.block):
                    number += 1
                    start = time.perf_counter()
                    await call(number)
                    if at:
                        times.append((time.perf_counter() - start) * 1e6)
    return ours, floor


async def measure(contest: Contest, round_trips: float) -> Result:
    """Run a contest and return its result."""
    ours, floor = await take_turns(contest)
    middle = statistics.median(ours) / statistics.median(floor)
    return Result(
        contest.name,
        round(statistics.median(ours), 1),
        round(statistics.quantiles(ours, n=20)[-1], 1),
        round(statistics.median(floor), 1),
        round(statistics.quantiles(floor, n=20)[-1], 1),
        round(middle, 2),
        contest.bar,
        round_trips,
    )
