"""A consolidator that is killed; run by ``python -m holdfast.chaos.memory_consolidator``."""

from __future__ import annotations

import asyncio

from holdfast.chaos.job import Job
from holdfast.wiring.front_door import open as open_state


async def main(job: Job) -> None:
    """Consolidate the tenant of the run until this process is killed."""
    settings = job.settings(max_connections=4)
    async with open_state(job.url, redis=job.redis, settings=settings, background=False) as state:
        job.begun()
        await state.ops.hybrid.consolidator.run(asyncio.Event(), tenants=[job.tenant])


if __name__ == "__main__":
    asyncio.run(main(Job.read()))
