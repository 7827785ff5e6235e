"""Clients of memory servers: ours in this process, ours and the reference as child processes."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

from holdfast import State
from holdfast.adapters.mcp import Caller, MemoryGraph, memory_server
from tests.npm_packages import installed, program

REFERENCE = Path(__file__).with_name("reference")


def caller(state: State, owner: str = "", *, writes: bool = True) -> Caller:
    """A caller of an owner."""
    view = state.for_owner(owner)
    return Caller(view, "mcp", MemoryGraph(view.items), writes=writes)


@asynccontextmanager
async def connected(who: Caller) -> AsyncIterator[Any]:
    """A client of a server in this process."""
    async with Client(memory_server(lambda _request: who, subscriptions=True)) as client:
        yield client


@asynccontextmanager
async def started(command: list[str], **environment: str) -> AsyncIterator[ClientSession]:
    """A client of a server that is a child process."""
    server = StdioServerParameters(
        command=command[0], args=command[1:], env={**os.environ, **environment}
    )
    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing) as client,
    ):
        await client.initialize()
        yield client


def ours(url: str, *options: str) -> list[str]:
    """The command that runs our server."""
    return [sys.executable, "-m", "holdfast.cli", "mcp", "--url", url, *options]


def reference() -> list[str]:
    """The command that runs the reference server."""
    package = installed(REFERENCE) / "node_modules" / "@modelcontextprotocol" / "server-memory"
    return [program("node"), str(package / "dist" / "index.js")]
