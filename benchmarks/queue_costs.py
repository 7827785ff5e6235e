"""What a task costs the server and the client, beside a job of pgqueuer: time, CPU and WAL.

Run it as ``PYTHONPATH=. .venv-bench/bin/python -m benchmarks.queue_costs [file.json]``. Both work
on one server in turns, each on a connection of its own. CPU time is that of the process of this
connection and that of the client: on a machine with other work it says more than the clock does.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from holdfast.bench.queues import Holdfast, PgQueuer, Queue
from holdfast.bench.servers import postgres

COUNT, ROUNDS, AT_ONCE = 500, 4, 100
BATCHES = (1, 10, 50)
WHAT = ("wall_us", "server_cpu_us", "client_cpu_us", "wal_bytes")
_CLIENTS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
_WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"

Measured = dict[tuple[str, str], list[list[float]]]


def _cpu_us(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


class _Meter:
    """Measures a queue by a connection that watches."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._pids: dict[str, int] = {}
        self.found: Measured = {}

    async def open(self, queue: Queue, url: str) -> None:
        """Open a queue, and find the process that serves it."""
        before = await self._clients()
        await queue.open(url)
        await queue.submit()
        await queue.work(1)
        # The connection on which the schema was made may take a moment to leave.
        async with asyncio.timeout(10):
            while len(new := await self._clients() - before) != 1:  # noqa: ASYNC110 - it alone knows
                await asyncio.sleep(0.05)
        [self._pids[queue.name]] = new

    async def _clients(self) -> set[int]:
        return {row[0] for row in await self._watcher.fetch(_CLIENTS)}

    async def measure(self, queue: Queue, what: str, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call that is for ``COUNT`` tasks."""
        wal, cpu = await self._watcher.fetchval(_WAL), _cpu_us(self._pids[queue.name])
        client, start = time.process_time(), time.perf_counter()
        await call()
        spent = [
            (time.perf_counter() - start) * 1e6,
            _cpu_us(self._pids[queue.name]) - cpu,
            (time.process_time() - client) * 1e6,
            await self._watcher.fetchval(_WAL) - wal,
        ]
        rounds = self.found.setdefault((what, queue.name), [])
        rounds.append([one / COUNT for one in spent])


async def _submit(queue: Queue) -> None:
    for _ in range(COUNT):
        await queue.submit()


async def _submit_many(queue: Queue) -> None:
    for _ in range(COUNT // AT_ONCE):
        await queue.submit_many(AT_ONCE)


async def _work_off(queue: Queue, batch: int) -> None:
    done = 0
    while done < COUNT:
        done += await queue.work(batch)


async def measure() -> dict[str, Any]:
    """Return the medians for each operation and queue, and ours by theirs as rates."""
    queues: list[Queue] = [Holdfast(), PgQueuer()]
    async with postgres() as url:
        watcher = await asyncpg.connect(url)
        meter = _Meter(watcher)
        for queue in queues:
            await meter.open(queue, url)
        for at in range(ROUNDS + 1):
            await _round(queues if at % 2 else queues[::-1], meter)
        for queue in queues:
            await queue.close()
        await watcher.close()
    return _report(meter.found, queues)


async def _round(queues: list[Queue], meter: _Meter) -> None:
    for batch in BATCHES:
        for queue in queues:
            await meter.measure(queue, "submit", partial(_submit, queue))
            work = partial(_work_off, queue, batch)
            await meter.measure(queue, f"claim and complete, {batch} at once", work)
    for queue in queues:
        await meter.measure(queue, "submit, 100 at once", partial(_submit_many, queue))
        await _work_off(queue, max(BATCHES))


def _report(found: Measured, queues: list[Queue]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for (what, name), rounds in found.items():
        # The first round warms the caches; it has as many entries as each of the others.
        kept = rounds[len(rounds) // (ROUNDS + 1) :]
        medians = [statistics.median(one) for one in zip(*kept, strict=True)]
        row = rows.setdefault(what, {})
        row[name] = {key: round(one, 1) for key, one in zip(WHAT, medians, strict=True)}
    ours, theirs = (queue.name for queue in queues)
    for row in rows.values():
        row["ours_by_theirs"] = {
            key: round(row[theirs][key] / row[ours][key], 2) for key in WHAT if row[ours][key]
        }
    return {"tasks": COUNT, "rounds": ROUNDS, "load_average": os.getloadavg()[0], "per_task": rows}


def main() -> None:
    """Measure, print a table, and write the file if one is named."""
    report = asyncio.run(measure())
    for what, row in report["per_task"].items():
        for name, values in row.items():
            cells = "  ".join(f"{key} {value:9.2f}" for key, value in values.items())
            sys.stdout.write(f"{what:32} {name:15} {cells}\n")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
