"""A worker whose ledger does not check the fence: what chaos must catch.

``python -m tests.chaos.unfenced_worker`` gets a job, as the real one does.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from holdfast.chaos.job import Job
from holdfast.chaos.task_worker import main
from holdfast.engines.postgres.tasks.progress import PostgresProgress
from holdfast.spi.tasks.records import Extent, TaskKey
from holdfast.spi.tasks.stored import StoredChunk
from holdfast.values.errors import LeaseLostError
from holdfast.values.tasks.records import Lease

_append_chunk = PostgresProgress.append_chunk


async def _append_whatever(self: Any, lease: Lease, chunk: StoredChunk) -> StoredChunk:
    """As if the fence of the lease were not compared: with whatever fence the task has now."""
    for _ in range(40):
        found = await self.get(TaskKey(lease.task_id, None), Extent())
        current = dataclasses.replace(lease, fence=found.task.fence)
        try:
            return await _append_chunk(self, current, chunk)
        except LeaseLostError:
            # Nobody works on it just now.
            await asyncio.sleep(0.1)
    return await _append_chunk(self, lease, chunk)


PostgresProgress.append_chunk = _append_whatever  # type: ignore[method-assign]

if __name__ == "__main__":
    asyncio.run(main(Job.read()))
