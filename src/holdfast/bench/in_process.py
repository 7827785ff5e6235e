"""Measures the calls of the in-memory engine, and ``import holdfast``."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.bench.latency import percentiles
from holdfast.values.content import ChatMessage
from holdfast.values.documents import Document
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.state import State

AGENT = AgentId("bench", "a1")
BODY = "the tide is low and the harbour is full of ships " * 36
VECTOR = [float(at % 7) + 1 for at in range(256)]


async def run(progress: Callable[[str], None], *, quick: bool = False) -> dict[str, Any]:
    """Measure each operation in interleaved rounds, and the import in new interpreters.

    ::

        found = await run(print, quick=True)
    """
    progress("in memory")
    async with open_state("memory:") as state:
        todo = await _operations(state)
        times: dict[str, list[float]] = {name: [] for name in todo}
        for _ in range(50 if quick else 300):
            for name, call in todo.items():
                start = time.perf_counter()
                await call()
                times[name].append(time.perf_counter() - start)
    progress("import holdfast")
    return {
        "import_seconds": await _import_seconds(3 if quick else 11),
        "operations": [{"name": name} | percentiles(taken) for name, taken in times.items()],
    }


async def _operations(state: State) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Return the measured operations, on data of the usual size: 1.8 KB bodies, 500 events."""
    for at in range(500):
        text = f"turn {at} about tide{at % 97} and ship{at % 31}"
        await state.episodes.append([Event(AGENT, "log", "observation", {"note": text})])
        await state.history.append(AGENT, ChatMessage.user(BODY), session_id="read")
    documents = [
        Document.from_text(f"d{at}", embedding=[*VECTOR[:-1], float(at)]) for at in range(500)
    ]
    await state.vectors.add(documents)
    await state.short_term.set_state("s1", {"current_task": "x", "other": BODY})

    async def task() -> None:
        await state.tasks.submit(AGENT, ChatMessage.user("work"))
        [claimed] = await state.tasks.claim("w1")
        await state.tasks.transition(claimed.lease, "completed")

    return {
        "memory append": lambda: state.history.append(
            AGENT, ChatMessage.user(BODY), session_id="write"
        ),
        "memory last 20": lambda: state.history.get_messages(
            AGENT, session_id="read", recent_limit=20
        ),
        "memory state patch": lambda: state.short_term.update_state("s1", {"step": 2}),
        "memory state get": lambda: state.short_term.get_state("s1", keys=["current_task"]),
        "memory vector top-5 of 500": lambda: state.vectors.search(VECTOR),
        "memory recall top-5 of 500": lambda: state.episodes.recall(AGENT, "tide13 and ship7"),
        "memory task: submit, claim, complete": task,
    }


async def _import_seconds(rounds: int) -> float:
    """Return how much longer ``import holdfast`` takes than an empty interpreter; the median."""

    async def run(text: str) -> float:
        start = time.perf_counter()
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", text)
        await process.wait()
        return time.perf_counter() - start

    pairs = [await run("import holdfast") - await run("pass") for _ in range(rounds)]
    return round(statistics.median(pairs), 3)
