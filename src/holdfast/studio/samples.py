"""Measurements for the charts of the health page, kept in this process for a day."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from holdfast.values.errors import HoldfastError, NotSupportedError
from holdfast.values.lifecycle import TaskState
from holdfast.wiring.state import State

EVERY_SECONDS = 30.0
KEPT_SECONDS = 24 * 3600.0
SHOWN = 600
"""Maximum number of points in a chart."""

COUNTED = 10_000
"""Maximum number of tasks that are counted."""

TASKS = {
    "Queued": (TaskState.SUBMITTED,),
    "Working": (TaskState.WORKING,),
    "Waits for a person": (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED),
}
COLOURS = ("blue", "green", "amber", "violet")
COLOUR_OF = {"Queued": "grey", "Working": "blue", "Waits for a person": "amber"}
"""The colours that the states have on the other pages."""

UNFLUSHED, UNINDEXED = "Not yet in Postgres", "Not yet in the index of words"
_OPEN = [state for states in TASKS.values() for state in states]


def has_hybrid(state: State) -> bool:
    """Return whether Redis stands in front of Postgres, so that events wait in it.

    ::

        has_hybrid(holdfast.open("memory:"))
    """
    try:
        return bool(state.ops.hybrid)
    except NotSupportedError:
        return False


@dataclass(frozen=True, slots=True)
class Sample:
    """The values that were measured at one time."""

    at: float
    tasks: dict[str, float] = field(default_factory=dict)
    events: dict[str, float] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    """The latency of each engine."""


class Samples:
    """Measures a tenant every 30 seconds.

    ::

        samples = Samples(state, closing)
        samples.start()
    """

    def __init__(self, state: State, closing: asyncio.Event) -> None:
        self._state = state
        self._closing = closing
        self._task: asyncio.Task[None] | None = None
        self._kept: deque[Sample] = deque(maxlen=int(KEPT_SECONDS / EVERY_SECONDS))

    def start(self) -> None:
        """Start to measure in the background; a second call has no effect."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="studio samples")

    async def _run(self) -> None:
        while not self._closing.is_set():
            await self.take()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), EVERY_SECONDS)

    async def take(self) -> None:
        """Measure once. An engine that does not answer leaves a gap in the charts."""
        now = time.time()
        try:
            found = await self._measured(now)
        except HoldfastError:
            found = Sample(now)
        self._kept.append(found)

    async def _measured(self, now: float) -> Sample:
        ledger, ops = self._state.tasks, self._state.ops
        counts = (await ledger.counts("state", states=_OPEN, limit=COUNTED)).counts
        health = await ops.health()
        return Sample(
            now,
            {name: sum(counts.get(one, 0) for one in states) for name, states in TASKS.items()},
            await self._events(),
            {one.engine: one.latency_seconds * 1000 for one in health.engines},
        )

    async def _events(self) -> dict[str, float]:
        ops = self._state.ops
        found: dict[str, float] = {UNINDEXED: await ops.unindexed_events()}
        return {UNFLUSHED: await ops.pending_events()} | found if has_hybrid(self._state) else found

    def charts(self) -> list[dict[str, Any]]:
        """Return the charts as plain JSON, with at most 600 points each."""
        kept = list(self._kept)
        step = -(-len(kept) // SHOWN) or 1
        shown = kept[::-step][::-1]
        return [
            _chart("Tasks", "", [one.at for one in shown], [one.tasks for one in shown]),
            _chart(
                "Events that wait", "", [one.at for one in shown], [one.events for one in shown]
            ),
            _chart(
                "Latency of engines",
                "ms",
                [one.at for one in shown],
                [one.milliseconds for one in shown],
            ),
        ]


def _chart(
    title: str, unit: str, times: list[float], rows: Sequence[dict[str, float]]
) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    series = [
        {
            "name": name,
            "values": [row.get(name) for row in rows],
            "colour": COLOUR_OF.get(name, COLOURS[at % len(COLOURS)]),
        }
        for at, name in enumerate(names)
    ]
    return {"title": title, "unit": unit, "times": times, "series": series}
