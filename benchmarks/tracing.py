"""What tracing costs: the same calls with telemetry on and off.

Run it as ``PYTHONPATH=. python -m benchmarks.tracing [file.json]``. Four databases of one server
have the same data: two without telemetry, so that their difference shows the noise, one with
tracing, and one with tracing and the metric of durations, which has no bar. The server has a core
of its own, as if it were another machine. Spans go through the
SDK's batch processor, are encoded for OTLP and then dropped. Batches of five calls are made in all
four in turn, each with the spans that it leaves behind. A round has the lower quartile of its
batches, which other programs on the machine disturb the least, and the ratio is the median of five
rounds. Exit code 1 if a ratio is above the bar.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import holdfast
from holdfast import ChatMessage, Event, Settings, State
from holdfast.bench.policies import AGENT, CASES, Call
from holdfast.spi import StepKey
from holdfast.telemetry import Telemetry
from holdfast.testing.postgres_server import PostgresServer

ROUNDS = 5
BATCHES = 30
CALLS = 5
BAR = 1.15


class _Dropped(SpanExporter):
    """Encodes spans as an exporter does, and sends them nowhere."""

    def __init__(self) -> None:
        self.bytes = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Encode the spans."""
        self.bytes += len(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


async def _cycle(state: State, number: int) -> None:
    """A task from its submit to its end, with one step."""
    agent = f"cycle-{number}"
    await state.tasks.submit(agent, ChatMessage.user("go"))
    [claimed] = await state.tasks.claim("w1", agents=[agent])
    await state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    await state.tasks.transition(claimed.lease, "completed")


MEASURED: dict[str, Call] = {name: call for name, (_, call) in CASES.items()} | {
    "task: submit to end": _cycle
}
del MEASURED["task: list one"]  # it reads as many tasks as were submitted before


async def _filled(server: PostgresServer, name: str, telemetry: Telemetry | None) -> State:
    """A database with 5,000 turns, a state and a task."""
    admin = await asyncpg.connect(server.url())
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    settings = Settings(auto_migrate=True, max_connections=4)
    url = server.url(database=name)
    state = await holdfast.open(url, settings=settings, telemetry=telemetry)
    for start in range(0, 5000, 500):
        texts = (f"harbour {at} tide {at * 7 % 11}" for at in range(start, start + 500))
        await state.episodes.append(
            [Event.of_message(AGENT, "s1", ChatMessage.user(text)) for text in texts]
        )
    await state.episodes.recall(AGENT, "tide")
    await state.short_term.set_state("s1", {"step": 0, "plan": ["read", "write"]})
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    owner = await asyncpg.connect(url)
    await owner.execute("VACUUM ANALYZE")
    await owner.close()
    return state


def _keep_apart(server: PostgresServer) -> None:
    """Give this process one core and the server another, as if it were another machine.

    Else the system moves the four connections between cores, and a small read takes 40 or 80 us.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    if len(cores) > 1 and server.process is not None:
        os.sched_setaffinity(server.process.pid, cores[1:])
        os.sched_setaffinity(0, cores[:1])


async def measure() -> dict[str, dict[str, float]]:
    """Return the medians in milliseconds and the ratios of each call."""
    dropped, provider = _Dropped(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(dropped))
    both = Telemetry(provider, MeterProvider([InMemoryMetricReader()]))
    server = PostgresServer(18)
    server.start()
    _keep_apart(server)
    try:
        states = [
            await _filled(server, "plain", None),
            await _filled(server, "again", None),
            await _filled(server, "traced", Telemetry(provider)),
            await _filled(server, "measured", both),
        ]
        rows = {name: await _row(states, call) for name, call in MEASURED.items()}
        for state in states:
            await state.aclose()
    finally:
        server.remove()
    provider.shutdown()
    if not dropped.bytes:
        raise RuntimeError("no span was exported: telemetry was not on")
    return rows


async def _row(states: list[State], call: Call) -> dict[str, float]:
    rounds: list[list[float]] = [[] for _ in states]
    number = 0
    for _ in range(ROUNDS + 1):
        taken: list[list[float]] = [[] for _ in states]
        for _ in range(BATCHES):
            number += CALLS
            for at in range(len(states)):
                # Each of them is the first as often as the others.
                which = (at + number // CALLS) % len(states)
                began = time.perf_counter()
                for one in range(CALLS):
                    await call(states[which], number + one)
                # Spans that were left for the next turn of the event loop belong to this batch.
                await asyncio.sleep(0)
                taken[which].append((time.perf_counter() - began) / CALLS)
        for which in range(len(states)):
            rounds[which].append(statistics.quantiles(taken[which], n=4)[0] * 1000)
    # The first round warms the caches.
    plain, again, traced, measured = (one[1:] for one in rounds)
    # Both plain ones together: half of the noise.
    off = [(a + b) / 2 for a, b in zip(plain, again, strict=True)]
    noise = statistics.median(a / b for a, b in zip(again, plain, strict=True))
    ratio = statistics.median(a / b for a, b in zip(traced, off, strict=True))
    durations = statistics.median(a / b for a, b in zip(measured, off, strict=True))
    return {
        "on_ms": round(statistics.median(traced), 4),
        "off_ms": round(statistics.median(off), 4),
        "ratio": round(ratio, 3),
        "with_durations": round(durations, 3),
        "same_twice": round(noise, 3),
        "bar": BAR,
    }


def main() -> None:
    """Measure, print a table, and write the file if one is named."""
    rows: dict[str, Any] = asyncio.run(measure())
    for name, row in rows.items():
        verdict = "" if row["ratio"] <= row["bar"] else "  above the bar"
        sys.stdout.write(
            f"{name:22} {row['off_ms']:8.3f} ms off {row['on_ms']:8.3f} ms on  {row['ratio']:.2f} "
            f"(bar {row['bar']:.2f}, the same twice {row['same_twice']:.2f}), with durations "
            f"{row['with_durations']:.2f}{verdict}\n"
        )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(any(row["ratio"] > row["bar"] for row in rows.values()))


if __name__ == "__main__":
    main()
