"""What row level security costs: the same calls with the policies of the tables on and off.

Run it as ``PYTHONPATH=. python -m benchmarks.policies [file.json]``. Three databases of one server
have the same data: two with policies, so that their difference shows the noise, and one without.
Each call is made in all three in turn. A row has the median of each round, and the ratio is the
median of five rounds. Exit code 1 if a ratio is above its bar.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

import holdfast
from holdfast import ChatMessage, Event, Settings, State
from holdfast.testing.postgres_server import PostgresServer
from holdfast.values.identity import AgentId

ROUNDS = 5
CALLS = 150
AGENT = AgentId.parse("writer")
WORDS = (
    "harbour",
    "crane",
    "tide",
    "pier",
    "rope",
    "anchor",
    "buoy",
    "gale",
    "mast",
    "keel",
    "dock",
)

WRITES, SMALL_READS = 1.10, 1.20
"""The bars: writes and recall, and the smallest reads."""

OFF = """
DO $$ DECLARE one regclass; BEGIN
    FOR one IN SELECT c.oid::regclass FROM pg_class c
        WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relrowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', one);
    END LOOP;
END $$
"""

Call = Callable[[State, int], Awaitable[Any]]


def _text(at: int) -> str:
    return " ".join(WORDS[(at * step + at // 7) % len(WORDS)] for step in (1, 2, 3, 5, 7, 11))


CASES: dict[str, tuple[float, Call]] = {
    "history: append one": (
        WRITES,
        lambda s, n: s.history.append(AGENT, ChatMessage.user(_text(n)), session_id="new"),
    ),
    "history: last 20": (
        SMALL_READS,
        lambda s, _: s.history.get_messages(AGENT, session_id="s1", limit=20),
    ),
    "state: patch": (WRITES, lambda s, n: s.short_term.update_state("s1", {"step": n})),
    "state: get": (SMALL_READS, lambda s, _: s.short_term.get_state("s1")),
    "recall: 5 of 5,000": (WRITES, lambda s, n: s.episodes.recall(AGENT, _text(n), limit=5)),
    "task: submit": (WRITES, lambda s, n: s.tasks.submit("other", ChatMessage.user(_text(n)))),
    "task: list one": (SMALL_READS, lambda s, _: s.tasks.list(agent="writer", limit=1)),
    "board: create": (
        WRITES,
        lambda s, n: s.boards.create_task_list(f"c{n}", [_text(n)], agent_id="writer"),
    ),
}


async def _filled(server: PostgresServer, name: str, *, policies: bool) -> State:
    """A database with 5,000 turns, a state and a task."""
    admin = await asyncpg.connect(server.url())
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    url = server.url(database=name)
    state = await holdfast.open(url, settings=Settings(auto_migrate=True, max_connections=4))
    if not policies:
        owner = await asyncpg.connect(url)
        await owner.execute(OFF)
        await owner.close()
    for start in range(0, 5000, 500):
        texts = (_text(at) for at in range(start, start + 500))
        await state.episodes.append(
            [Event.of_message(AGENT, "s1", ChatMessage.user(text)) for text in texts]
        )
    await state.episodes.recall(AGENT, "tide")
    await state.short_term.set_state("s1", {"step": 0, "plan": ["read", "write"]})
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    return state


async def measure() -> dict[str, dict[str, float]]:
    """Return the medians in milliseconds and the ratios of each call."""
    server = PostgresServer(18)
    server.start()
    try:
        states = [
            await _filled(server, "first", policies=True),
            await _filled(server, "again", policies=True),
            await _filled(server, "without", policies=False),
        ]
        rows = {name: await _row(states, case) for name, case in CASES.items()}
        for state in states:
            await state.aclose()
    finally:
        server.remove()
    return rows


async def _row(states: list[State], case: tuple[float, Call]) -> dict[str, float]:
    bar, call = case
    medians: list[list[float]] = [[], [], []]
    number = 0
    for _ in range(ROUNDS + 1):
        taken: list[list[float]] = [[], [], []]
        for _ in range(CALLS):
            number += 1
            for at in range(3):
                # Each of them is the first of the three as often as the others.
                which = (at + number) % 3
                began = time.perf_counter()
                await call(states[which], number)
                taken[which].append(time.perf_counter() - began)
        for which in range(3):
            medians[which].append(statistics.median(taken[which]) * 1000)
    # The first round warms the caches.
    first, again, without = (one[1:] for one in medians)
    noise = statistics.median(a / b for a, b in zip(again, first, strict=True))
    ratio = statistics.median(a / b for a, b in zip(first, without, strict=True))
    return {
        "with_ms": round(statistics.median(first), 4),
        "without_ms": round(statistics.median(without), 4),
        "ratio": round(ratio, 3),
        "same_twice": round(noise, 3),
        "bar": bar,
    }


def main() -> None:
    """Measure, print a table, and write the file if one is named."""
    rows = asyncio.run(measure())
    for name, row in rows.items():
        verdict = "" if row["ratio"] <= row["bar"] else "  above its bar"
        sys.stdout.write(
            f"{name:22} {row['without_ms']:8.3f} ms off {row['with_ms']:8.3f} ms on  "
            f"{row['ratio']:.2f} (bar {row['bar']:.2f}, the same twice {row['same_twice']:.2f})"
            f"{verdict}\n"
        )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(any(row["ratio"] > row["bar"] for row in rows.values()))


if __name__ == "__main__":
    main()
