"""A process that runs a graph and hangs in its second node, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from tests.adapters.langgraph.graphs import line, thread


async def _hang(_state: Any) -> Any:
    print("in the second node", flush=True)  # noqa: T201 - the parent waits for it
    await asyncio.Event().wait()


async def main(url: str, tenant: str) -> None:
    """Run until the second node."""
    async with holdfast.open(url, tenant=tenant) as state:
        graph = line(HoldfastSaver(state), lambda _: {"log": ["first"]}, _hang)
        await graph.ainvoke({"log": ["in"]}, thread("t1"), durability="sync")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
