"""Agents whose log acknowledges before it writes: what chaos must catch.

``python -m tests.chaos.early_agent`` gets a job, as the real one does. What it writes late it
does write, unless somebody kills it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.chaos.job import Job
from holdfast.chaos.memory_agent import main
from holdfast.engines.hybrid.log import HybridLog
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import BackPressureError, EngineError

LATE_SECONDS = 0.5

_append = HybridLog.append
_waiting: list[tuple[HybridLog, Sequence[LogEntry]]] = []


async def _append_later(
    self: HybridLog, entries: Sequence[LogEntry], **_named: Any
) -> list[PositionedEntry]:
    """As if it were written: the caller cannot tell."""
    _waiting.append((self, entries))
    return [PositionedEntry(entry, 1, 1) for entry in entries]


async def _write() -> None:
    while _waiting:
        log, entries = _waiting[0]
        try:
            await _append(log, entries)
        except (EngineError, BackPressureError):
            await asyncio.sleep(0.05)
        else:
            _waiting.pop(0)


async def _write_late() -> None:
    while True:
        await asyncio.sleep(LATE_SECONDS)
        await _write()


async def _main(job: Job) -> None:
    late = asyncio.create_task(_write_late())
    await main(job)
    late.cancel()


HybridLog.append = _append_later  # type: ignore[method-assign]

if __name__ == "__main__":
    asyncio.run(_main(Job.read()))
