"""Every metric: its name, type, labels and meaning, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.engines.hybrid import metrics as hybrid

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Source: TypeAlias = Literal["process", "queue", "index", "pool", "hot log"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as Prometheus reads it.

    >>> METRICS["holdfast_streams"].kind
    'gauge'
    """

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    source: Source = "process"
    """``process`` is counted in memory; all other sources are read from an engine at a scrape."""


CALLS = "holdfast_calls_total"
CALL_SECONDS = "holdfast_call_seconds"
RESPONSES = "holdfast_responses_total"
STREAMS = "holdfast_streams"
TASK_RUNS = "holdfast_task_runs_total"
RUNNING = "holdfast_tasks_running"
DELIVERIES = "holdfast_deliveries_total"
SOURCE_UP = "holdfast_source_up"
TASKS = "holdfast_tasks"
OLDEST_DUE = "holdfast_tasks_oldest_due_seconds"
UNEMBEDDED = "holdfast_recall_unembedded_events"
DEAD_LETTERS = "holdfast_dead_letters"
UNINDEXED = "holdfast_recall_unindexed_events"
POOL_SIZE = "holdfast_pool_size"
POOL_IN_USE = "holdfast_pool_in_use"
POOL_WAITING = "holdfast_pool_waiting"

COUNTED = 10_000
"""Maximum number of tasks of each state that are counted."""

_OWN = (
    Metric(CALLS, "counter", "A2A calls", ("method", "outcome")),
    Metric(
        CALL_SECONDS,
        "histogram",
        "How long A2A calls took; streams up to their first event",
        ("method",),
    ),
    Metric(RESPONSES, "counter", "HTTP responses", ("status",)),
    Metric(STREAMS, "gauge", "Open streams"),
    Metric(
        TASK_RUNS, "counter", "Runs of handlers in this process, by how they ended", ("outcome",)
    ),
    Metric(RUNNING, "gauge", "Handlers that run in this process"),
    Metric(DELIVERIES, "counter", "Push notifications", ("outcome",)),
    Metric(
        SOURCE_UP,
        "gauge",
        "Whether this scrape could read a source; 0: its metrics are missing, and the log says why",
        ("source",),
    ),
    Metric(
        TASKS,
        "gauge",
        f"Tasks of all tenants that have not ended, at most {COUNTED} of each state; agents "
        "without a handler in this process are other",
        ("state", "agent"),
        "queue",
    ),
    Metric(
        OLDEST_DUE,
        "gauge",
        "For how long the oldest task has been due that no worker has claimed",
        source="queue",
    ),
    Metric(
        UNEMBEDDED,
        "gauge",
        "Events of all tenants that wait for a vector, at most",
        source="queue",
    ),
    Metric(
        DEAD_LETTERS,
        "gauge",
        "Events that could not be stored, and were neither replayed nor discarded",
        source="queue",
    ),
    Metric(UNINDEXED, "gauge", "Events that wait for the index of words, at most", source="index"),
    Metric(POOL_SIZE, "gauge", "Connections that the pool may have", ("engine",), "pool"),
    Metric(POOL_IN_USE, "gauge", "Connections of the pool in use", ("engine",), "pool"),
    Metric(POOL_WAITING, "gauge", "Calls that wait for a connection", ("engine",), "pool"),
)
_HYBRID = tuple(
    Metric(name, "counter" if name.endswith("_total") else "gauge", about, source="hot log")
    for name, about in hybrid.HELP.items()
)
METRICS: dict[str, Metric] = {one.name: one for one in (*_OWN, *_HYBRID)}
"""All metrics by name."""


def series() -> frozenset[str]:
    """Return every name that a query can use: a histogram has three.

    >>> "holdfast_call_seconds_bucket" in series()
    True
    """
    return frozenset(
        name
        for one in METRICS.values()
        for name in (
            [f"{one.name}_{part}" for part in ("bucket", "count", "sum")]
            if one.kind == "histogram"
            else [one.name]
        )
    )
