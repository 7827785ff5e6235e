"""Studio is tested on the engine in the process and on a real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import holdfast
from holdfast import Settings, State
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import empty_database


@pytest_asyncio.fixture(scope="session")
async def database() -> AsyncIterator[str]:
    """A database with the schema; tests share it, each in a tenant of its own."""
    async with (
        empty_database() as url,
        holdfast.open(url, settings=Settings(auto_migrate=True)),
    ):
        yield url


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each kind, in a tenant of its own."""
    url = "memory:" if request.param == "memory" else database
    async with holdfast.open(url, tenant=new_ref(), settings=Settings(max_connections=6)) as opened:
        yield opened
