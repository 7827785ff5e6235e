"""``holdfast bench tasks``: how many no-op tasks a second, and whether a long task costs more."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from holdfast.bench.queues import Queue, contestants
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.values.content import ChatMessage

BODY = "the tide is low and the harbour is full of ships " * 24


@dataclass(frozen=True, slots=True)
class Rate:
    """What one contestant did, in tasks a second."""

    name: str
    submit: float
    claim_and_complete: float


@dataclass(slots=True)
class Report:
    """All contestants, and the price of a long task."""

    batch: int
    rates: list[Rate]
    missing: list[str]
    growth: float
    """A message added to a task with 1,000 against one with 10."""
    bars: dict[str, bool] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


async def run(progress: Callable[[str], None], *, batch: int = 50, quick: bool = False) -> Report:
    """Start a Postgres of our own and let each contestant work on it in turns."""
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
            progress("a long task")
            growth = await _growth(embedded.url, 100 if quick else 400)
        finally:
            await embedded.aclose()
    by_name = {rate.name: rate.claim_and_complete for rate in rates}
    bars = {"a message to a task with 1,000 within 1.2 of one with 10": growth <= 1.2}
    if "pgqueuer" in by_name:
        bars["at least pgqueuer at the same batch size"] = (
            by_name["holdfast"] >= by_name["pgqueuer"]
        )
    return Report(batch, rates, missing, growth, bars)


async def _contest(
    queues: list[Queue], progress: Callable[[str], None], *, count: int, rounds: int, batch: int
) -> list[Rate]:
    submits: dict[str, list[float]] = {queue.name: [] for queue in queues}
    works: dict[str, list[float]] = {queue.name: [] for queue in queues}
    for at in range(rounds + 1):
        for queue in queues if at % 2 else queues[::-1]:
            progress(f"round {at} of {rounds}: {queue.name}")
            start = time.perf_counter()
            for _ in range(count):
                await queue.submit()
            submitted = time.perf_counter()
            done = 0
            while done < count:
                done += await queue.work(batch)
            if at:
                submits[queue.name].append(count / (submitted - start))
                works[queue.name].append(count / (time.perf_counter() - submitted))
    return [
        Rate(
            queue.name,
            round(statistics.median(submits[queue.name])),
            round(statistics.median(works[queue.name])),
        )
        for queue in queues
    ]


async def _growth(url: str, calls: int) -> float:
    """What a message costs in a task with 1,000 of them against one with 10."""
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
