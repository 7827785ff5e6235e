"""A consolidator that acknowledges before the commit: what chaos must catch.

``python -m tests.chaos.hasty_consolidator`` gets a job, as the real one does. What it has
acknowledged it does commit, unless somebody kills it, or Postgres, meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.chaos.job import Job
from holdfast.chaos.memory_consolidator import main
from holdfast.engines.hybrid.consolidation import Consolidator, _read
from holdfast.spi.hybrid.durable_log import Outcome

COMMIT_SECONDS = 0.7
"""How long a commit takes here, so that a fault falls between the two."""


async def _flush(self: Any, tenant: str, shard: int) -> int | None:
    async with self._durable.flushing(tenant, shard) as flush:
        if flush is None:
            return None
        turns = await self._hot.claim(tenant, shard, limit=500)
        stored = [(turn, Outcome.STORED) for turn in turns]
        await self._hot.acknowledge(tenant, shard, stored)
        if turns:
            await asyncio.sleep(COMMIT_SECONDS)
            await flush.store([_read(turn) for turn in turns])
    return len(turns)


Consolidator.flush_shard = _flush  # type: ignore[method-assign]

if __name__ == "__main__":
    asyncio.run(main(Job.read()))
