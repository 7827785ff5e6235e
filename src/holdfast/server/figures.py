"""The metrics that a scrape reads from the engines: queues, indexes, pools, the hot log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from holdfast.server.metric_names import (
    COUNTED,
    DEAD_LETTERS,
    METRICS,
    OLDEST_DUE,
    POOL_IN_USE,
    POOL_SIZE,
    POOL_WAITING,
    SOURCE_UP,
    TASKS,
    UNEMBEDDED,
    UNINDEXED,
    Source,
)
from holdfast.values.errors import HoldfastError, NotSupportedError
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.server")
AGENTS = 50
"""Maximum number of agents of an app that have a label value of their own."""

Sample: TypeAlias = tuple[str, tuple[str, ...], float]
"""A metric's name, the values of its labels, and its value."""

_Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily


class Figures:
    """Reads the metrics of all tenants from the engines, for one scrape at a time.

    Without ``agents`` the process has no app, and the metrics have no tasks. ::

        text = await Figures(state, agents=["writer"]).text()
    """

    def __init__(self, state: State, agents: Sequence[str] | None = None) -> None:
        self._state = state
        self._agents = None if agents is None else list(agents)[:AGENTS]
        self._running: asyncio.Task[bytes] | None = None

    async def text(self) -> bytes:
        """Return the metrics in the Prometheus text format.

        Concurrent scrapes share one reading, so that they do not fill the pool. A source that does
        not answer is logged and shown by ``holdfast_source_up``.
        """
        if self._running is None:
            self._running = asyncio.create_task(self._read())
            self._running.add_done_callback(self._ended)
        # A client that disconnects must not cancel the reading for the others.
        return await asyncio.shield(self._running)

    def _ended(self, _task: asyncio.Task[bytes]) -> None:
        self._running = None

    async def _read(self) -> bytes:
        sources: tuple[tuple[Source, Callable[[], Awaitable[list[Sample]]]], ...] = (
            ("queue", self._queue),
            ("index", self._index),
            ("pool", self._pools),
            ("hot log", self._hot_log),
        )
        samples: list[Sample] = []
        for source, read in sources:
            try:
                samples += await read()
            except NotSupportedError:
                continue
            except HoldfastError as error:
                _log.warning("the metrics of the %s are missing: %s", source, error)
                samples.append((SOURCE_UP, (source,), 0.0))
            else:
                samples.append((SOURCE_UP, (source,), 1.0))
        registry = CollectorRegistry()
        registry.register(_Samples(samples))
        return generate_latest(registry)

    async def _queue(self) -> list[Sample]:
        found = await self._state.ops.backlog(agents=self._agents or [], limit=COUNTED)
        shown: list[Sample] = [
            (UNEMBEDDED, (), found.unembedded_events),
            (DEAD_LETTERS, (), found.dead_letters),
        ]
        if self._agents is not None:
            shown.append((OLDEST_DUE, (), found.oldest_due_seconds))
            # Each agent has its queue shown, also an empty one: a missing series raises no alert.
            counts = {("submitted", one): 0 for one in self._agents} | found.tasks
            shown += [(TASKS, key, count) for key, count in sorted(counts.items())]
        return shown

    async def _index(self) -> list[Sample]:
        return [(UNINDEXED, (), await self._state.ops.unindexed_events())]

    async def _pools(self) -> list[Sample]:
        return [
            (name, (engine,), value)
            for engine, use in self._state.ops.pools().items()
            for name, value in (
                (POOL_SIZE, use.size),
                (POOL_IN_USE, use.in_use),
                (POOL_WAITING, use.waiting),
            )
        ]

    async def _hot_log(self) -> list[Sample]:
        return [(name, (), value) for name, value in await self._state.ops.hybrid.samples()]


class _Samples(Collector):
    """Samples as ``prometheus_client`` writes them."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._families: dict[str, _Family] = {}
        for name, labels, value in samples:
            self._family(name).add_metric(labels, value)

    def _family(self, name: str) -> _Family:
        if name not in self._families:
            metric = METRICS[name]
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            self._families[name] = family(name, metric.about, labels=metric.labels)
        return self._families[name]

    def collect(self) -> Iterator[_Family]:
        """Yield each metric with its samples."""
        yield from self._families.values()
