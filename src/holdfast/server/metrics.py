"""Prometheus metrics of the service, in a separate registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from a2a.utils.errors import A2AError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from holdfast.runtime.runner import Ending
from holdfast.server import metric_names as names

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

M = TypeVar("M")


class Metrics:
    """The metrics of one process; no label contains data from a client.

    >>> b"holdfast_streams" in Metrics().text()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.calls = self._made(Counter, names.CALLS)
        self.call_seconds = self._made(Histogram, names.CALL_SECONDS, buckets=_SECONDS)
        self.responses = self._made(Counter, names.RESPONSES)
        self.streams = self._made(Gauge, names.STREAMS)
        self.task_runs = self._made(Counter, names.TASK_RUNS)
        self.running = self._made(Gauge, names.RUNNING)
        self.deliveries = self._made(Counter, names.DELIVERIES)

    def _made(self, kind: Callable[..., M], name: str, **options: Any) -> M:
        metric = names.METRICS[name]
        return kind(name, metric.about, metric.labels, registry=self._registry, **options)

    def count_run(self, ending: Ending) -> None:
        """Count a run of a handler by its outcome."""
        self.task_runs.labels(ending.outcome if ending.state else "suspended or lost").inc()

    @contextmanager
    def call(self, method: str) -> Iterator[None]:
        """Count one call and measure its duration."""
        begin = time.perf_counter()
        outcome = "ok"
        try:
            yield
        except A2AError as error:
            outcome = type(error).__name__
            raise
        except BaseException:
            outcome = "left"
            raise
        finally:
            self.calls.labels(method, outcome).inc()
            self.call_seconds.labels(method).observe(time.perf_counter() - begin)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)
