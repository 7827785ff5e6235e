"""What two libraries are asked to do alike, and the row that comes of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, TypeAlias

from benchmarks.peers.workload import Workload
from holdfast.bench.contest import Call, Contest, take_turns

Calls: TypeAlias = Mapping[str, Call]
"""A side's calls by the name of the operation."""

QUICK_BLOCKS = 5
NOT_SLOWER = 1.0
"""The bar where nothing more is asked for than not to be slower than the peer."""


@dataclass(frozen=True, slots=True)
class Line:
    """One operation that both sides do, how often, and how much faster ours should be."""

    operation: str
    ours: str
    peer: str
    bar: float
    note: str
    block: int = 20
    blocks: int = 30
    each: int = 1
    """How many things one call does: the figures are for one of them."""
    unit: str = "µs a call; the ratio is that of the medians"

    def blocks_of(self, *, quick: bool) -> int:
        """How many blocks are counted."""
        return min(self.blocks, QUICK_BLOCKS) if quick else self.blocks

    def calls_of(self, *, quick: bool) -> int:
        """How often a side is called, the warm-up included."""
        return (self.blocks_of(quick=quick) + 1) * self.block


@dataclass(frozen=True, slots=True)
class Growth:
    """How the cost of a call grows: two lines, on a short and on a long one of the same kind."""

    name: str
    short: Line
    long: Line
    bar: float
    """What a call on the long one may cost us, times one on the short one."""
    start: int
    end: int
    """The lengths."""
    block: int = 2
    blocks: int = 20

    def blocks_of(self, *, quick: bool) -> int:
        """How many blocks are counted."""
        return min(self.blocks, QUICK_BLOCKS) if quick else self.blocks

    def calls_of(self, *, quick: bool) -> int:
        """How often each line is called for it, the warm-up included."""
        return (self.blocks_of(quick=quick) + 1) * self.block

    async def measure(self, ours: Calls, theirs: Calls, *, quick: bool) -> dict[str, Any]:
        """Measure the long one and the short one by turns, on each side. Returns the ratios.

        ::

            found = await growth.measure(ours, theirs, quick=True)
        """
        found: dict[str, Any] = {"name": self.name, "from": self.start, "to": self.end}
        for side, calls in (("ours", ours), ("peer", theirs)):
            long, short = calls[self.long.operation], calls[self.short.operation]
            blocks = self.blocks_of(quick=quick)
            contest = Contest(self.name, long, short, self.bar, blocks=blocks, block=self.block)
            times = await take_turns(contest)
            found[side] = round(statistics.median(times[0]) / statistics.median(times[1]), 2)
        return found | {"bar": self.bar, "met": found["ours"] <= self.bar}


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the sides meet: the servers, what is said, and how much of it."""

    url: str
    redis: str
    workload: Workload
    quick: bool = False
    length: int = 500
    """How many messages a session has from which the last ones are read."""


class Peer(Protocol):
    """A library with some operations that Holdfast has too."""

    name: str
    packages: tuple[str, ...]
    """What must be installed, as the registry calls it; the first is the peer itself."""
    install: str
    """What to give to ``pip install``."""
    lines: tuple[Line, ...]
    growth: Growth | None = None

    def ours(self, stage: Stage) -> AbstractAsyncContextManager[Calls]:
        """Our side of each line, filled and ready."""
        ...

    def theirs(self, stage: Stage) -> AbstractAsyncContextManager[Calls]:
        """The peer's side of each line, filled and ready."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """What a line gave, in microseconds."""

    operation: str
    ours: str
    peer: str
    ours_p50_us: float
    ours_p95_us: float
    ours_p99_us: float
    peer_p50_us: float
    peer_p95_us: float
    peer_p99_us: float
    ratio: float
    """How many times as fast ours is: higher is better."""
    bar: float
    unit: str
    note: str
    samples: int

    @property
    def met(self) -> bool:
        """Whether ours is so much faster as it should be."""
        return self.ratio >= self.bar

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self) | {"met": self.met}


async def play(line: Line, ours: Call, theirs: Call, *, quick: bool = False) -> Row:
    """Let both sides do a line in turns.

    ::

        row = await play(line, ours["append"], theirs["append"])
    """
    blocks = line.blocks_of(quick=quick)
    contest = Contest(line.operation, ours, theirs, line.bar, blocks=blocks, block=line.block)
    our_times, their_times = await take_turns(contest)
    mine, other = (_percentiles(times, line.each) for times in (our_times, their_times))
    ratio = statistics.median(their_times) / statistics.median(our_times)
    return Row(
        line.operation,
        line.ours,
        line.peer,
        *mine,
        *other,
        ratio=round(ratio, 2),
        bar=line.bar,
        unit=line.unit,
        note=line.note,
        samples=len(our_times),
    )


def _percentiles(times: list[float], each: int) -> tuple[float, float, float]:
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    middle, high, highest = (round(cuts[at] / each, 1) for at in (49, 94, 98))
    return middle, high, highest


def absent(packages: tuple[str, ...]) -> list[str]:
    """Which of some packages are not installed.

    >>> absent(("asyncpg", "no-such-package"))
    ['no-such-package']
    """
    return [name for name in packages if not version_of(name)]


def version_of(package: str) -> str:
    """The version of an installed package; empty where it is not installed.

    >>> version_of("no-such-package")
    ''
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
