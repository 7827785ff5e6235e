"""``holdfast bench tasks``: no-op tasks per second, and whether a long task costs more."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.bench.functions import by_dbos, by_holdfast
from holdfast.bench.queues import Queue, contestants
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.values.content import ChatMessage

BATCHES = (1, 10, 50)
"""How many tasks a claim takes, in addition to the batch size that was asked for."""
AT_ONCE = 100
"""How many tasks one call queues where several are queued in one call."""
BODY = "the tide is low and the harbour is full of ships " * 24


@dataclass(frozen=True, slots=True)
class Rate:
    """The rates of one contestant, in tasks per second."""

    name: str
    submit: float
    claim_and_complete: float
    submit_many: float = 0.0
    by_batch: dict[str, float] = field(default_factory=dict)
    """Claims and completions per second, by the batch size of a claim."""


@dataclass(slots=True)
class Report:
    """The results of all contestants, and the cost of a long task."""

    batch: int
    rates: list[Rate]
    missing: list[str]
    growth: float
    """The cost of a message in a task with 1,000 messages, relative to one with 10."""
    bars: dict[str, bool] = field(default_factory=dict)
    functions: dict[str, float] = field(default_factory=dict)
    """No-op functions per second that were queued and run, with their result stored."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


async def run(progress: Callable[[str], None], *, batch: int = 50, quick: bool = False) -> Report:
    """Start a Postgres and let the contestants work on it in alternation."""
    count, rounds = (200, 3) if quick else (1000, 5)
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(Path(name) / "state")
        try:
            queues, missing = contestants()
            for queue in queues:
                await queue.open(embedded.url)
            rates = await _contest(queues, progress, count=count, rounds=rounds, batch=batch)
            for queue in queues:
                await queue.close()
            functions = await _functions(embedded.url, progress, rounds=rounds)
            if "DBOS" not in functions:
                missing.append("DBOS")
            progress("a long task")
            growth = await _growth(embedded.url, 100 if quick else 400)
        finally:
            await embedded.aclose()
    by_name = {rate.name: rate for rate in rates}
    bars = {"a message to a task with 1,000 within 1.2 of one with 10": growth <= 1.2}
    if "pgqueuer" in by_name:
        mine, peer = by_name["holdfast"], by_name["pgqueuer"]
        bars["submit at least 0.9 of pgqueuer"] = mine.submit >= 0.9 * peer.submit
        for size, rate in peer.by_batch.items():
            bars[f"at least 0.95 of pgqueuer at a batch of {size}"] = (
                mine.by_batch[size] >= 0.95 * rate
            )
    if "DBOS" in functions:
        ours, theirs = functions["holdfast"], functions["DBOS"]
        bars["functions are run not slower than by DBOS"] = ours >= theirs
    return Report(batch, rates, missing, growth, bars, functions)


async def _functions(
    url: str, progress: Callable[[str], None], *, rounds: int, count: int = 100
) -> dict[str, float]:
    """Let our worker and, if it is installed, DBOS run functions in alternation."""
    runners = {"holdfast": by_holdfast} | ({"DBOS": by_dbos} if find_spec("dbos") else {})
    rates: dict[str, list[float]] = {name: [] for name in runners}
    async with AsyncExitStack() as opened:
        runs = {name: await opened.enter_async_context(one(url)) for name, one in runners.items()}
        for at in range(rounds + 1):
            for name, run in runs.items() if at % 2 else reversed(runs.items()):
                progress(f"round {at} of {rounds}: {name} runs functions")
                start = time.perf_counter()
                await run(count)
                if at:
                    rates[name].append(count / (time.perf_counter() - start))
    return {name: _median(found) for name, found in rates.items()}


async def _contest(
    queues: list[Queue], progress: Callable[[str], None], *, count: int, rounds: int, batch: int
) -> list[Rate]:
    sizes = sorted({*BATCHES, batch})
    submits: dict[str, list[float]] = {queue.name: [] for queue in queues}
    many: dict[str, list[float]] = {queue.name: [] for queue in queues}
    works = {(queue.name, size): list[float]() for queue in queues for size in sizes}
    for at in range(rounds + 1):
        for size in sizes:
            for queue in queues if at % 2 else queues[::-1]:
                progress(f"round {at} of {rounds}: {queue.name}, batches of {size}")
                start = time.perf_counter()
                for _ in range(count):
                    await queue.submit()
                submitted = time.perf_counter()
                await _work_off(queue, count, size)
                if at:
                    submits[queue.name].append(count / (submitted - start))
                    works[queue.name, size].append(count / (time.perf_counter() - submitted))
        for queue in queues if at % 2 else queues[::-1]:
            start = time.perf_counter()
            for _ in range(count // AT_ONCE):
                await queue.submit_many(AT_ONCE)
            if at:
                many[queue.name].append(count / (time.perf_counter() - start))
            await _work_off(queue, count, max(sizes))
    return [
        Rate(
            queue.name,
            _median(submits[queue.name]),
            _median(works[queue.name, batch]),
            _median(many[queue.name]),
            {str(size): _median(works[queue.name, size]) for size in sizes},
        )
        for queue in queues
    ]


def _median(rates: list[float]) -> float:
    return round(statistics.median(rates))


async def _work_off(queue: Queue, count: int, batch: int) -> None:
    done = 0
    while done < count:
        done += await queue.work(batch)


async def _growth(url: str, calls: int) -> float:
    """Return the cost of a message in a task with 1,000 messages, relative to one with 10."""
    engine = await Postgres.open(url, max_connections=1)
    ledger = Ledger(PostgresLedger(engine, tenant="growth"))
    leases = []
    for length in (10, 1000):
        await ledger.submit("bench", ChatMessage.user(BODY))
        [claimed] = await ledger.claim("w1", lease_seconds=3600)
        for _ in range(length):
            await ledger.append_message(claimed.lease, ChatMessage.assistant(BODY))
        leases.append(claimed.lease)
    times: list[list[float]] = [[], []]
    for at in range(calls):
        # In turns of a few; each message makes its task a little longer, on both sides.
        for side in (0, 1) if at % 2 else (1, 0):
            message = ChatMessage.assistant(BODY)
            start = time.perf_counter()
            await ledger.append_message(leases[side], message)
            times[side].append(time.perf_counter() - start)
    await engine.aclose()
    return round(statistics.median(times[1]) / statistics.median(times[0]), 2)
