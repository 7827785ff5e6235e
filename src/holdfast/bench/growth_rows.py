"""The rows of ``holdfast bench growth``: the cost of a call at each size."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from holdfast.bench.latency import percentiles, slope

Operation: TypeAlias = Callable[[int], Awaitable[Any]]

CALLS, LIMIT_SECONDS = 100, 3.0
"""How often a call is measured at each size, and for how many seconds at most."""


@dataclass(slots=True)
class Row:
    """One operation of one wiring, measured at growing sizes."""

    grows: str
    wiring: str
    operation: str
    points: list[dict[str, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values, with the slope of the medians."""
        sizes = [point["size"] for point in self.points]
        middle = [point["p50_us"] for point in self.points]
        row = {"grows": self.grows, "wiring": self.wiring, "operation": self.operation}
        steep = slope(sizes, middle) if len(sizes) > 1 else None
        return row | {"points": self.points, "slope": steep}


@dataclass(slots=True)
class Rows:
    """All rows of a run."""

    rows: list[Row] = field(default_factory=list)

    def add(self, key: tuple[str, str, str], size: int, seconds: list[float]) -> None:
        """Add the measurement at one size to a row.

        ::

            rows.add(("events of a session", "hybrid", "record"), 100, [0.001])
        """
        for row in self.rows:
            if (row.grows, row.wiring, row.operation) == key:
                break
        else:
            row = Row(*key)
            self.rows.append(row)
        row.points.append({"size": size, "calls": len(seconds)} | percentiles(seconds))

    def sizes(self, key: tuple[str, str, str]) -> dict[float, dict[str, float]]:
        """Return the measurements of a benchmark row by size; empty if there is no such row.

        ::

            rows.sizes(("agents", "hybrid", "record"))[100]["p50_us"]
        """
        found = [row for row in self.rows if (row.grows, row.wiring, row.operation) == key]
        return {point["size"]: point for row in found for point in row.points}


async def measured(
    rows: Rows, key: tuple[str, str], size: int, operations: dict[str, Operation], calls: int
) -> None:
    """Measure each operation separately; its first calls are a warm-up.

    ::

        await measured(rows, ("agents", "hybrid"), 100, {"record": record}, calls=100)
    """
    for name, call in operations.items():
        taken: list[float] = []
        limit = time.perf_counter() + LIMIT_SECONDS
        for at in range(calls + 5):
            start = time.perf_counter()
            await call(at)
            if at >= 5:
                taken.append(time.perf_counter() - start)
            if taken and start > limit:
                break
        rows.add((*key, name), size, taken)
