"""One place on each engine, opened with keys or without, and a look at all that it stores."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

import holdfast
from holdfast import Settings, State
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.spi.key_provider import KeyProvider
from holdfast.wiring import inmemory
from tests.engines.postgres_database import connected, empty_database

RING = KeyRing({"k1": bytes(range(32))}, name="tests")


@dataclasses.dataclass
class Place:
    """A database, or the memory of this process; every ``open`` sees the same data."""

    url: str
    engine: InMemory
    stack: AsyncExitStack

    async def open(self, seal: KeyProvider | None = RING, *, seal_vectors: str = "") -> State:
        """Open a state, closed at the end of the test."""
        chosen = Settings(auto_migrate=True, seal_vectors=seal_vectors)
        opening = holdfast.open(self.url, settings=chosen, seal=seal)
        return await self.stack.enter_async_context(opening)

    async def dump(self) -> str:
        """All rows of all tables as text, read around the stores."""
        if self.url == "memory:":
            return "\n".join(map(repr, self.engine.tables()))
        return await rows_of(self.url)


async def rows_of(url: str) -> str:
    """All rows of all tables of a database as text."""
    async with connected(url) as connection:
        tables = await connection.fetch(
            "SELECT c.relname FROM pg_class c "
            "WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p')"
        )
        rows = [
            row[0]
            for [table] in tables
            for row in await connection.fetch(
                f'SELECT t::text FROM holdfast."{table}" t'  # noqa: S608 - of the catalog
            )
        ]
    return "\n".join(rows)


@pytest_asyncio.fixture(loop_scope="session", params=["inmemory", "postgres"])
async def place(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    """A place with nothing in it."""
    engine = InMemory()
    async with AsyncExitStack() as stack:
        url = "memory:"
        if request.param == "postgres":
            url = await stack.enter_async_context(empty_database())
        else:
            # Every state of the test shares one engine, as processes share a database.
            monkeypatch.setattr(inmemory, "InMemory", lambda clock=None: engine)  # noqa: ARG005
        yield Place(url, engine, stack)
