"""A memory server and a client of it in one process: `python examples/mcp_memory.py [folder]`."""

from __future__ import annotations

import asyncio
import sys

from mcp.client import Client

import holdfast
from holdfast.adapters.mcp import Caller, MemoryGraph, memory_server


async def main(url: str) -> None:
    """Remember a fact and recall it."""
    async with holdfast.open(url) as state:
        ana = state.for_owner("ana")
        caller = Caller(ana, "assistant", MemoryGraph(ana.items))
        async with Client(memory_server(lambda _request: caller)) as client:
            await client.call_tool("remember", {"text": "Ana sails on Sundays", "topic": "habits"})
            found = await client.call_tool("recall", {"query": "when does Ana sail?"})
            print(found.structured_content["facts"][0]["text"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "memory:"))
