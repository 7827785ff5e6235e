"""A process that puts two items, each in a call of its own, until it is killed."""

from __future__ import annotations

import asyncio
import sys

import holdfast
from holdfast.adapters.langgraph import HoldfastStore


async def main(url: str, tenant: str) -> None:
    """Put one item, say so, and hang with the next call under way."""
    async with holdfast.open(url, tenant=tenant) as state:
        store = HoldfastStore(state)
        await store.aput(("users", "ana"), "first", {"n": 1})
        print("one is stored", flush=True)  # noqa: T201 - the parent waits for it
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
