"""The service is tested on the engine in the process and on a real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from holdfast import State
from tests.engines.postgres_database import migrated_database
from tests.wiring.kept_states import fresh_state


@pytest_asyncio.fixture(scope="session")
async def database() -> AsyncIterator[str]:
    """A database with the schema; tests share it, each in a tenant of its own."""
    async with migrated_database() as url:
        yield url


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each kind, in a tenant of its own."""
    url = "memory:" if request.param == "memory" else database
    async with fresh_state(url) as opened:
        yield opened
