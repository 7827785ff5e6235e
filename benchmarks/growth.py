"""What calls cost in a large database beside a small one, in the same run.

Run it as ``PYTHONPATH=. python -m benchmarks.growth [file.json]``. Two databases of one server: a
large one with 10 million events, 1 million tasks, 100,000 sessions and 1,000 tenants, and a small
one. Each call is made in both in turn, for one of 100 sessions of 10 tenants that were picked at
random, as many in the large database as in the small. The row called cold picks among all sessions
of these tenants, which are ten times as many in the large database. A row has the p50 of all calls,
and the ratio is the median of the rounds' ratios. It takes some minutes and 25 GB below the folder
for temporary files. Exit code 1 if a ratio is above the bar.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

import holdfast
from benchmarks.growth_rows import EVENTS, Size, fill, note
from holdfast import ChatMessage, Settings, State
from holdfast.bench.latency import percentiles
from holdfast.testing.postgres_server import PostgresServer
from holdfast.values.identity import AgentId

SMALL = Size(tenants=10, sessions=100, tasks=6_000, waiting=3_000)
LARGE = Size(tenants=1_000, sessions=100_000, tasks=1_000_000, waiting=300_000)
PICKED = 10
"""How many tenants calls are made for, of each database, and how many sessions of each tenant."""

ROUNDS = 15
CALLS = 60
BAR = 1.2
_SEED = 29


@dataclass(slots=True)
class Database:
    """One of the two, with the states of the tenants that calls are made for."""

    size: Size
    states: list[tuple[int, State]] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(_SEED))  # noqa: S311 - a sample
    picked: list[int] = field(default_factory=list)
    """Which sessions of a tenant calls are made for."""

    def any(self, *, cold: bool = False) -> tuple[State, str, AgentId]:
        """Return a tenant's state, and one of its sessions with its agent."""
        number, state = self.random.choice(self.states)
        each = self.size.sessions // self.size.tenants
        of_tenant = self.random.randrange(each) if cold else self.random.choice(self.picked)
        session = number + of_tenant * self.size.tenants
        return state, f"s{session}", AgentId("writer", f"a{of_tenant}")


Call = Callable[[Database, int], Awaitable[Any]]


async def _append(database: Database, at: int) -> None:
    state, session, agent = database.any()
    await state.history.append(agent, ChatMessage.user(note(at)), session_id=session)


async def _record(database: Database, at: int) -> None:
    state, session, agent = database.any()
    await state.memory(agent, session_id=session).record("note", {"text": note(at)})


async def _last(database: Database, _: int, *, cold: bool = False) -> None:
    state, session, agent = database.any(cold=cold)
    found = await state.memory(agent, session_id=session).recent(20)
    _must(len(found) == 20)


async def _hydrate(database: Database, _: int) -> None:
    state, session, agent = database.any()
    woken = await state.memory(agent, session_id=session).hydrate()
    _must(len(woken.recent) == 20)


async def _hydrate_asked(database: Database, at: int) -> None:
    state, session, agent = database.any()
    woken = await state.memory(agent, session_id=session).hydrate(note(at))
    _must(len(woken.recalled) > 0)


async def _submit(database: Database, at: int) -> None:
    state, *_rest = database.any()
    await state.tasks.submit("other", ChatMessage.user(note(at)))


async def _claim(database: Database, _: int) -> None:
    state, *_rest = database.any()
    claimed = await state.tasks.claim("w1", agents=["worker"])
    _must(len(claimed) == 1)


async def _survey(database: Database, _: int) -> None:
    state, *_rest = database.any()
    found = await state.ops.work.survey(limit=PICKED)
    _must(len(found.tenants("due")) == PICKED)


CASES: dict[str, Call] = {
    "append one": _append,
    "record": _record,
    "last 20": _last,
    "hydrate": _hydrate,
    "hydrate with a query": _hydrate_asked,
    "submit": _submit,
    "claim": _claim,
    "last 20, cold": partial(_last, cold=True),
    "find tenants with work": _survey,
}
UNBOUND = {"last 20, cold", "find tenants with work"}
"""What has no bar: rows that are in no cache, and a call that asks every tenant that has work."""


def _must(holds: bool) -> None:
    if not holds:
        raise RuntimeError("a call did not return what the database holds")


async def _opened(stack: AsyncExitStack, server: PostgresServer, name: str, size: Size) -> Database:
    admin = await asyncpg.connect(server.url())
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    url = server.url(database=name)
    database = Database(size)
    # The schema is made by the first state.
    async with holdfast.open(url, settings=Settings(auto_migrate=True)):
        pass
    connection = await asyncpg.connect(url)
    await fill(url, connection, size, lambda text: _say(f"{name}: {text}"))
    await connection.close()
    database.picked = database.random.sample(range(size.sessions // size.tenants), PICKED)
    for number in database.random.sample(range(size.tenants), PICKED):
        settings = Settings(max_connections=2)
        opened = holdfast.open(url, tenant=f"t{number}", settings=settings)
        database.states.append((number, await stack.enter_async_context(opened)))
    await _checked(database)
    return database


async def _checked(database: Database) -> None:
    """Read a sample through the API: it is what the API would have written."""
    for number, state in database.states:
        session, agent = f"s{number}", AgentId("writer", "a0")
        memory = state.memory(agent, session_id=session)
        found = await memory.recent(EVENTS)
        _must([one.payload["text"] for one in found] == [note(at) for at in range(EVENTS)])
        _must(await memory.state.get(keys=["step"]) == {"step": 3})
        _must({one.event.session_id for one in await memory.recall("harbour", 5)} == {session})
        page = await state.tasks.list(agent="worker", limit=1, states=["completed"])
        [step] = await state.tasks.steps(page.tasks[0].id)
        _must(step.result == {"pages": 3})


async def measure() -> dict[str, Any]:
    """Fill both databases and return the rows."""
    server = PostgresServer(18, "-c", "max_wal_size=8GB", "-c", "shared_buffers=2GB")
    server.start()
    start, load = time.perf_counter(), os.getloadavg()[0]
    try:
        async with AsyncExitStack() as stack:
            small = await _opened(stack, server, "small", SMALL)
            large = await _opened(stack, server, "large", LARGE)
            filled = time.perf_counter() - start
            rows = {
                name: await _row(small, large, call) | {"bar": None if name in UNBOUND else BAR}
                for name, call in CASES.items()
            }
        admin = await asyncpg.connect(server.url())
        sizes = {
            name: await admin.fetchval("SELECT pg_database_size($1)", name)
            for name in ("small", "large")
        }
        await admin.close()
    finally:
        server.remove()
    return {
        "small": SMALL.to_json() | {"bytes": sizes["small"]},
        "large": LARGE.to_json() | {"bytes": sizes["large"]},
        "fill_seconds": round(filled, 1),
        "load_average": round(load, 2),
        "rows": rows,
    }


async def _row(small: Database, large: Database, call: Call) -> dict[str, Any]:
    taken: tuple[list[float], list[float]] = ([], [])
    ratios = []
    for turn in range(ROUNDS + 1):
        this: tuple[list[float], list[float]] = ([], [])
        for at in range(CALLS):
            # Each of them is the first of the two as often as the other.
            for which in (0, 1) if at % 2 else (1, 0):
                began = time.perf_counter()
                await call((small, large)[which], turn * CALLS + at)
                this[which].append(time.perf_counter() - began)
        if turn:  # The first round warms the caches.
            ratios.append(statistics.median(this[1]) / statistics.median(this[0]))
            for whole, part in zip(taken, this, strict=True):
                whole.extend(part)
    found = {
        f"{name}_{key}": value
        for name, seconds in zip(("small", "large"), taken, strict=True)
        for key, value in percentiles(seconds).items()
    }
    return found | {
        "ratio": round(statistics.median(ratios), 3),
        "ratio_lowest": round(min(ratios), 3),
        "ratio_highest": round(max(ratios), 3),
    }


def _misses(row: dict[str, Any]) -> bool:
    return row["bar"] is not None and row["ratio"] > row["bar"]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> None:
    """Measure, print a table, and write the file if one is named."""
    facts = asyncio.run(measure())
    for name, row in facts["rows"].items():
        verdict = "  above its bar" if _misses(row) else ""
        sys.stdout.write(
            f"{name:24} {row['small_p50_us']:9.1f} us small {row['large_p50_us']:9.1f} us large  "
            f"{row['ratio']:.2f} (bar {row['bar'] or 'none'}){verdict}\n"
        )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(facts, indent=2) + "\n")
    sys.exit(any(map(_misses, facts["rows"].values())))


if __name__ == "__main__":
    main()
