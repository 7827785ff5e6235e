"""Erasures are tested on each wiring: in memory, on Postgres, and with Redis beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from holdfast import Settings, State
from tests.engines.postgres_database import migrated_database
from tests.erasure.residue import Servers
from tests.wiring.kept_states import fresh_state
from tests.wiring.valkey import valkey

KEY = "1f" * 32


@pytest_asyncio.fixture(scope="session")
async def database() -> AsyncIterator[str]:
    """A database with the schema; tests share it, each in a tenant of its own."""
    async with migrated_database() as url:
        yield url


@pytest_asyncio.fixture(params=["memory", "postgres", "hybrid"])
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each wiring, in a tenant of its own."""
    url = "memory:" if request.param == "memory" else database
    redis = valkey().url if request.param == "hybrid" else ""
    settings = Settings(max_connections=6, receipt_key=KEY)
    async with fresh_state(url, redis=redis, settings=settings) as opened:
        yield opened


@pytest_asyncio.fixture(params=["postgres", "hybrid"])
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Servers]:
    """Postgres with files on disk, and with Valkey beside it."""
    with ExitStack() as kept:
        yield Servers(kept, hybrid=request.param == "hybrid")
