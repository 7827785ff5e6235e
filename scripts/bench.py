"""What the in-memory engine costs, and what ``import holdfast`` costs: ``make bench``.

A measurement, not a test. It prints the command that made it and the versions it ran on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import holdfast
from holdfast import AgentId, ChatMessage, Document, Event

AGENT = AgentId("bench", "a1")
BODY = "the tide is low and the harbour is full of ships " * 36
VECTOR = [float(at % 7) + 1 for at in range(256)]


async def operations(state: holdfast.State) -> dict[str, Callable[[], Awaitable[Any]]]:
    """What is measured, on data of the size that the design names: 1.8 KB bodies, 500 events."""
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
        "history.append": lambda: state.history.append(
            AGENT, ChatMessage.user(BODY), session_id="write"
        ),
        "history.get_messages(last=20)": lambda: state.history.get_messages(
            AGENT, session_id="read", last=20
        ),
        "short_term.update_state": lambda: state.short_term.update_state("s1", {"step": 2}),
        "short_term.get_state(keys=1)": lambda: state.short_term.get_state(
            "s1", keys=["current_task"]
        ),
        "vectors.search(5 of 500)": lambda: state.vectors.search(VECTOR),
        "episodes.recall(5 of 500)": lambda: state.episodes.recall(AGENT, "tide13 and ship7"),
        "tasks submit, claim, complete": task,
    }


async def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Each operation in interleaved rounds; microseconds a call."""
    async with holdfast.open("memory:") as state:
        todo = await operations(state)
        times: dict[str, list[float]] = {name: [] for name in todo}
        for _ in range(rounds):
            for name, call in todo.items():
                start = time.perf_counter()
                await call()
                times[name].append((time.perf_counter() - start) * 1e6)
    return {
        name: {
            "p50_us": round(statistics.median(taken), 1),
            "p95_us": round(statistics.quantiles(taken, n=20)[-1], 1),
        }
        for name, taken in times.items()
    }


def import_seconds(rounds: int) -> float:
    """How much longer ``import holdfast`` takes than a bare interpreter; the median."""

    def run(program: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - our own
        return time.perf_counter() - start

    pairs = [run("import holdfast") - run("pass") for _ in range(rounds)]
    return round(statistics.median(pairs), 3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="calls of each operation")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    result = {
        "command": "make bench",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "import_seconds": import_seconds(11),
        "operations": asyncio.run(measure(options.rounds)),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"import holdfast: {result['import_seconds']} s more than an empty program\n")
    print(f"{'in memory':<34}{'p50 µs':>10}{'p95 µs':>10}")
    for name, row in result["operations"].items():  # type: ignore[attr-defined]
        print(f"{name:<34}{row['p50_us']:>10}{row['p95_us']:>10}")


if __name__ == "__main__":
    main()
