"""Prometheus metrics of the service, in a separate registry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from a2a.utils.errors import A2AError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from holdfast.runtime.runner import Ending

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """The metrics of one process; no label contains data from a client.

    >>> b"holdfast_streams" in Metrics().text()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.calls = Counter(
            "holdfast_calls", "A2A calls", ["method", "outcome"], registry=self._registry
        )
        self.call_seconds = Histogram(
            "holdfast_call_seconds",
            "How long A2A calls took; streams up to their first event",
            ["method"],
            registry=self._registry,
            buckets=_SECONDS,
        )
        self.responses = Counter(
            "holdfast_responses", "HTTP responses", ["status"], registry=self._registry
        )
        self.streams = Gauge("holdfast_streams", "Open streams", registry=self._registry)
        self.task_runs = Counter(
            "holdfast_task_runs",
            "Runs of handlers in this process, by how they ended",
            ["outcome"],
            registry=self._registry,
        )
        self.running = Gauge(
            "holdfast_tasks_running", "Handlers that run in this process", registry=self._registry
        )
        self.deliveries = Counter(
            "holdfast_deliveries", "Push notifications", ["outcome"], registry=self._registry
        )

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
