"""A consolidator to be killed: ``python -m holdfast.chaos.memory_consolidator URL REDIS``."""

from __future__ import annotations

import asyncio
import sys

from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings


async def main(url: str, redis: str) -> None:
    """Consolidate until somebody ends it."""
    async with open_state(url, redis=redis, settings=Settings(max_connections=4)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
