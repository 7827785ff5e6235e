"""A database and a Valkey as the landed version left them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from holdfast.engines.postgres import migrate
from holdfast.testing.valkey_server import ValkeyServer
from tests.engines.postgres_database import connected, empty_database
from tests.upgrade.making import ANSWERS, KEYS, ROWS

LANDED = 20
"""The last migration of the landed version."""


def answers() -> dict[str, Any]:
    """How the landed version read what it had stored."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return found


@asynccontextmanager
async def landed_schema() -> AsyncIterator[str]:
    """The URL of a database with the landed version's schema and nothing in it."""
    before = migrate.migrations()[:LANDED]
    async with empty_database() as url:
        async with connected(url) as connection:
            with pytest.MonkeyPatch.context() as earlier:
                earlier.setattr(migrate, "migrations", lambda: before)
                earlier.setattr(migrate, "function_files", lambda: ())
                await migrate.migrate(connection)
        yield url


@asynccontextmanager
async def landed_database() -> AsyncIterator[str]:
    """The URL of a database with everything that the landed version stored."""
    async with landed_schema() as url:
        async with connected(url) as connection:
            # What triggers did is in the rows.
            await connection.execute("SET session_replication_role = replica")
            await connection.execute(ROWS.read_text(encoding="utf-8"))
        yield url


@asynccontextmanager
async def empty_valkey() -> AsyncIterator[str]:
    """The URL of a Valkey with nothing in it."""
    server = ValkeyServer(fsync="no")
    server.start()
    try:
        yield server.url
    finally:
        server.remove()


@asynccontextmanager
async def landed_valkey() -> AsyncIterator[str]:
    """The URL of a Valkey with every key that the landed version left."""
    async with empty_valkey() as url:
        redis = Redis.from_url(url)
        for key, (left, value) in json.loads(KEYS.read_text(encoding="utf-8")).items():
            await redis.restore(key, left, bytes.fromhex(value))
        await redis.aclose()
        yield url
