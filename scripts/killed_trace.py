"""The trace of a task whose worker was killed, as a collector received it from three processes.

``make docs`` does not run it, because it takes a few seconds: ``python -m scripts.killed_trace``
writes its output to the page, and a test holds the page to it.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import holdfast
from holdfast import Settings, State
from holdfast.telemetry import Telemetry
from holdfast.testing.postgres_server import PostgresServer
from tests.telemetry.spans import Receiver, Seen, receiving

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "trace-and-monitor.md"
BLOCK = re.compile(r"(?<=```text\n)submit tasks.*?(?=```)", re.DOTALL)
WAIT_SECONDS = 120
"""How long it waits for what must come; far more than it takes."""

AGENTS = """
import asyncio, os
from datetime import timedelta
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
import holdfast

provider = TracerProvider(resource=Resource({"service.instance.id": os.environ["PROCESS"]}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(os.environ["COLLECTOR"])))
trace.set_tracer_provider(provider)
app = holdfast.App("writer")

@app.handler
async def write(task):
    await task.step("fetch", lambda: "tides")
    if "HANGS" in os.environ:
        await asyncio.Event().wait()
    # Not at once: the task has parked by then, and waits without a worker.
    return await task.call("reader", "chapter 2", run_after=timedelta(seconds=0.5))

@app.handler(agent="reader")
async def read(task):
    return await task.step("summarize", lambda: "high water at noon")
"""


async def killed_trace() -> list[Seen]:
    """Run a task whose first worker is killed with ``kill -9``, and return its whole trace."""
    postgres = PostgresServer(18)
    postgres.start()
    workers: list[subprocess.Popen[bytes]] = []
    try:
        with tempfile.TemporaryDirectory() as name, receiving() as receiver:
            folder = Path(name)
            (folder / "agents.py").write_text(AGENTS)
            provider = TracerProvider(resource=Resource({"service.instance.id": "client"}))
            provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(receiver.url)))
            settings = Settings(database_url=postgres.url(), auto_migrate=True)
            async with holdfast.open(settings=settings, telemetry=Telemetry(provider)) as state:
                task = await state.tasks.submit("writer", holdfast.ChatMessage.user("tides"))

                def start(process: str, **more: str) -> None:
                    environment = {"DATABASE_URL": postgres.url(), "COLLECTOR": receiver.url}
                    environment |= {"PROCESS": process, "HOLDFAST_OTEL": "1", **more}
                    workers.append(_worker(folder, process, environment))

                start("worker-1", HANGS="1")
                await _until(lambda: _has_stored(state, task.id, receiver))
                workers[0].kill()
                workers[0].wait()
                start("worker-2")
                await _until(lambda: _has_ended(state, task.id))
            workers[1].send_signal(signal.SIGTERM)
            await asyncio.to_thread(workers[1].wait, WAIT_SECONDS)
            [root] = [one for one in receiver.spans if one.name == "submit tasks"]
            return [one for one in receiver.spans if one.trace == root.trace]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        postgres.remove()


def _worker(folder: Path, name: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    options = ("--name", name, "--lease-seconds", "1", "--recovery-seconds", "0.1", "--log-json")
    kept = {one: os.environ[one] for one in ("PATH", "HOME") if one in os.environ}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "holdfast.cli", "worker", "agents:app", *options],
            cwd=folder,
            env=kept | environment,
            stdout=log,
            stderr=log,
        )


async def _has_stored(state: State, task_id: str, receiver: Receiver) -> bool:
    stored = await state.tasks.steps(task_id)
    return bool(stored) and any(one.name == "record_step tasks" for one in receiver.spans)


async def _has_ended(state: State, task_id: str) -> bool:
    found = await state.tasks.get(task_id, messages_limit=0)
    return found is not None and found.terminal


async def _until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not await true():  # noqa: ASYNC110 - only the condition knows when
            await asyncio.sleep(0.05)


def drawn(spans: list[Seen]) -> str:
    """Return a trace as a tree of names, with the process and the outcome of each span."""
    known = {one.id for one in spans}
    below: dict[str, list[Seen]] = {}
    for one in sorted(spans, key=lambda span: span.start):
        below.setdefault(one.parent, []).append(one)
    [root] = below[""]
    lost = {
        parent: _span_of_the_dead(parent, root, found)
        for parent, found in below.items()
        if parent and parent not in known
    }
    below[root.id] = sorted([*below.get(root.id, []), *lost.values()], key=lambda one: one.start)
    return "\n".join(_lines(root, below, "")) + "\n"


def _span_of_the_dead(span_id: str, root: Seen, children: list[Seen]) -> Seen:
    """Return what stands for a span that never ended: only its children arrived."""
    first = children[0]
    return Seen(
        "(a span of a killed process, never ended)",
        *(root.trace, span_id, root.id, {}, first.process, first.start, first.end),
        error=False,
    )


def _lines(span: Seen, below: dict[str, list[Seen]], indent: str) -> Iterator[str]:
    facts = [span.process]
    if (fence := span.attributes.get("holdfast.task.fence")) is not None:
        facts.append(f"claim {fence}")
    if outcome := span.attributes.get("holdfast.task.outcome"):
        facts.append(f"now {outcome}")
    if trips := span.attributes.get("holdfast.round_trips"):
        facts.append(f"round trips {trips}")
    yield f"{indent}{span.name:<{58 - len(indent)}}{', '.join(facts)}"
    for child in below.get(span.id, []):
        yield from _lines(child, below, indent + "  ")


def main() -> None:
    """Write the trace to the page."""
    shown = drawn(asyncio.run(killed_trace()))
    PAGE.write_text(BLOCK.sub(lambda _: shown, PAGE.read_text()))
    print(shown)


if __name__ == "__main__":
    main()
