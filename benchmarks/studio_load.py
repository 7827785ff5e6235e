"""What each page of Studio costs in a large world, beside the same page in a small one.

Run it as ``PYTHONPATH=. python -m benchmarks.studio_load [file.json]``. It fills two tenants of one
embedded Postgres: 100,000 tasks, a task of 20,000 events, a session of 100,000 events and an entity
with 5,000 relationships; and as many of each as one page shows. Every page is read from both in
turn, so that a busy machine slows both. The cost is the CPU time of this process, which renders,
and of Postgres; the wall time is given too. Exit code 1 if a page costs more than 3 times as much.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import holdfast
from holdfast import ChatMessage, Event, Settings, State
from holdfast.studio.access import Access
from holdfast.studio.app import studio
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from holdfast.values.tasks.new_task import NewTask
from holdfast.values.tasks.reports import StatusReport

BASE = "http://127.0.0.1:8620"
MOST = 3.0
READS = 15
BATCH = 1000
SAME = 25
"""How many events have a word in common, in both worlds."""

VERSIONS = 100
"""How many versions of the working state are kept, in both worlds."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class World:
    """How much a tenant holds."""

    tasks: int
    events: int
    turns: int
    edges: int


LARGE = World(tasks=100_000, events=20_000, turns=100_000, edges=5_000)
SMALL = World(tasks=200, events=400, turns=200, edges=250)
"""Each is a little more than one page shows."""


async def fill(state: State, world: World) -> str:
    """Fill a tenant, and return the id of the task with many events."""
    for begin in range(0, world.tasks, BATCH):
        texts = [
            f"Tide table {at} of Brest" for at in range(begin, min(begin + BATCH, world.tasks))
        ]
        new = [NewTask(f"agent-{at % 7}", ChatMessage.user(text)) for at, text in enumerate(texts)]
        await state.tasks.submit_many(new)
    task = await state.tasks.adopt("long", agent="writer", session_id="s1")
    version = task.version
    while version < world.events:
        count = min(BATCH, world.events - version)
        said = [
            StatusReport("working", ChatMessage.assistant(f"page {at}")) for at in range(count // 2)
        ]
        version = await state.tasks.record(
            "long", said or [StatusReport("working")], expected_version=version
        )
    agent = AgentId.parse("writer")
    for begin in range(0, world.turns, BATCH):
        numbers = range(begin, min(begin + BATCH, world.turns))
        await state.episodes.append(
            [
                Event(agent, "s1", "note", {"text": f"tide word{at % (world.turns // SAME)}"})
                for at in numbers
            ]
        )
    for at in range(VERSIONS):
        await state.short_term.update_state("s1", {"step": at, f"k{at % 10}": "x" * 100})
    names = [f"n{at}" for at in range(world.edges)]
    await state.graph.add_entities([Entity("Hub", {"name": "Hub"}, "hub")])
    for begin in range(0, world.edges, BATCH):
        some = names[begin : begin + BATCH]
        await state.graph.add_entities([Entity("Leaf", {"name": one}, one) for one in some])
        await state.graph.add_relationships([Relationship("hub", one, "has") for one in some])
    return task.id


def pages(world: World) -> dict[str, str]:
    """Return the pages that are read."""
    return {
        "inbox": "/studio",
        "tasks": "/studio/tasks",
        "tasks, filtered": "/studio/tasks?state=submitted&agent=agent-3",
        "tasks, by words": "/studio/tasks?q=table",
        "task, now": "/studio/tasks/long",
        "task, in the middle": f"/studio/tasks/long?at={world.events // 2}",
        "boards": "/studio/boards",
        "sessions": "/studio/sessions",
        "session, now": "/studio/sessions/s1",
        "session, in the middle": f"/studio/sessions/s1?at={world.turns // 2}",
        "recall": "/studio/recall?agent=writer&q=word3&session=s1",
        "recall, all events match": "/studio/recall?agent=writer&q=tide&session=s1",
        "search": "/studio/search?q=word3",
        "search, all events match": "/studio/search?q=tide",
        "facts": "/studio/facts?agent=writer",
        "entities": "/studio/graph",
        "graph of an entity": "/studio/graph?from=hub",
        "health": "/studio/health",
    }


def postgres_seconds(folder: Path) -> float:
    """Return the CPU time of the Postgres of a folder, with its processes, so far."""
    server = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    total = 0
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = one.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(one.parent.name) == server or int(fields[1]) == server:
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


@dataclass(slots=True)
class Cost:
    """What one page cost, in milliseconds for each read."""

    wall: float
    process: float
    postgres: float
    size: int

    @property
    def cpu(self) -> float:
        """The CPU time of both."""
        return self.process + self.postgres


async def read(client: httpx.AsyncClient, path: str, folder: Path) -> Cost:
    """Read a page several times."""
    walls, size = [], 0
    began, theirs = time.process_time(), postgres_seconds(folder)
    for _ in range(READS):
        start = time.perf_counter()
        response = await client.get(path)
        walls.append(time.perf_counter() - start)
        if response.status_code != 200:
            raise SystemExit(f"{path}: {response.status_code}")
        size = len(response.content)
    mine = time.process_time() - began
    theirs = postgres_seconds(folder) - theirs
    each = 1000 / READS
    return Cost(statistics.median(walls) * 1000, mine * each, theirs * each, size)


def visitor(state: State) -> httpx.AsyncClient:
    """Return a browser that has logged in as the operator of a tenant."""
    access = Access()
    app = studio(state, access, hosts=frozenset({"127.0.0.1"}))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app),
        base_url=BASE,
        cookies={"holdfast": access.seal(access.open(state.tenant))},
        timeout=120,
    )


async def measure(folder: Path) -> list[dict[str, Any]]:
    """Fill both worlds, and read every page of each in turn."""
    rows = []
    async with holdfast.open(str(folder), settings=Settings(state_versions=VERSIONS)) as base:
        small, large = base.for_tenant("small"), base.for_tenant("large")
        for name, state, world in (("small", small, SMALL), ("large", large, LARGE)):
            began = time.monotonic()
            await fill(state, world)
            sys.stderr.write(f"filled {name} in {time.monotonic() - began:.0f} s\n")
        await base.ops.index_pending()
        # Autovacuum looks at new tables once a minute, and plans are made from what it finds.
        await asyncio.sleep(75)
        async with visitor(small) as one, visitor(large) as other:
            for name, path in pages(SMALL).items():
                path_large = pages(LARGE)[name]
                await one.get(path), await other.get(path_large)
                costs = [
                    (await read(one, path, folder), await read(other, path_large, folder))
                    for _ in range(2)
                ]
                few = min((pair[0] for pair in costs), key=lambda cost: cost.cpu)
                many = min((pair[1] for pair in costs), key=lambda cost: cost.cpu)
                rows.append(_row(name, few, many))
                sys.stderr.write(f"{name:24} {rows[-1]}\n")
    return rows


def _row(name: str, small: Cost, large: Cost) -> dict[str, Any]:
    return {
        "page": name,
        "small": _figures(small),
        "large": _figures(large),
        "cpu_ratio": round(large.cpu / small.cpu, 2),
        "wall_ratio": round(large.wall / small.wall, 2),
    }


def _figures(cost: Cost) -> dict[str, Any]:
    return {
        "wall_ms": round(cost.wall, 1),
        "process_cpu_ms": round(cost.process, 1),
        "postgres_cpu_ms": round(cost.postgres, 1),
        "page_bytes": cost.size,
    }


def main() -> None:
    """Measure, write the figures, and fail if a page is too dear."""
    with tempfile.TemporaryDirectory(prefix="studio-load-") as name:
        Path(name).chmod(0o755)
        rows = asyncio.run(measure(Path(name) / "state"))
    figures = {"large": _counts(LARGE), "small": _counts(SMALL), "most": MOST, "pages": rows}
    text = json.dumps(figures, indent=2) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)
    else:
        sys.stdout.write(text)
    dear = [row["page"] for row in rows if row["cpu_ratio"] > MOST]
    if dear:
        raise SystemExit(f"more than {MOST} times the small world: {', '.join(dear)}")


def _counts(world: World) -> dict[str, int]:
    return {name: getattr(world, name) for name in World.__slots__}


if __name__ == "__main__":
    main()
