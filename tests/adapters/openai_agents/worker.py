"""A process that adds to a session, begins a second call, and hangs until it is killed."""

from __future__ import annotations

import asyncio
import sys

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession


async def main(url: str, tenant: str) -> None:
    """Add one batch, and never the next."""
    async with holdfast.open(url, tenant=tenant) as state:
        session = HoldfastSession("s1", state)
        await session.add_items([{"role": "user", "content": f"first {at}"} for at in range(3)])
        print("between two calls", flush=True)  # noqa: T201 - the parent waits for it
        await asyncio.Event().wait()
        await session.add_items([{"role": "user", "content": "never"}])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
