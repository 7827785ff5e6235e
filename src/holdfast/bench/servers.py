"""Servers of a benchmark's own: in a temporary folder, on sockets, gone when it ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from holdfast.backends.postgres.embedded import EmbeddedPostgres
from holdfast.kernel.core.errors import MissingExtraError


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
        await self._fetch(self.postgres, f"CREATE DATABASE {name}")
        url = self.postgres.replace("/postgres?", f"/{name}?", 1)
        await self._fetch(url, "CREATE EXTENSION IF NOT EXISTS vector")
        return url

    async def settle(self, url: str) -> None:
        """Let the planner know the tables, as a server does by itself after a minute."""
        await self._fetch(url, "VACUUM (ANALYZE)")

    async def table_bytes(self, url: str) -> dict[str, int]:
        """What each table of a database takes on disk, with its indexes and what is outside."""
        rows = await self._fetch(
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

    async def _fetch(self, url: str, statement: str) -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()


@asynccontextmanager
async def started() -> AsyncIterator[Servers]:
    """Start both, and stop both.

    ::

        async with started() as servers:
            url = await servers.database("ours")
    """
    try:
        from holdfast.testing.valkey_server import ValkeyServer  # noqa: PLC0415 - see below
    except ModuleNotFoundError:
        raise MissingExtraError("a Valkey of the benchmark's own", "bench") from None
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        valkey = ValkeyServer()
        embedded = await EmbeddedPostgres.open(Path(name) / "state")
        try:
            valkey.start()
            yield Servers(embedded.url, f"unix://{valkey.socket}")
        finally:
            valkey.remove()
            await embedded.aclose()
