"""States for the tests of the LangChain adapter: in memory, and on Postgres."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import State
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: Any) -> None:
    """Mark the async tests of the framework's kit, which expects that all are run."""
    is_test = name.startswith("test_") and HERE in collector.path.parents
    if is_test and inspect.iscoroutinefunction(obj):
        pytest.mark.asyncio(loop_scope="session")(obj)


@pytest.fixture(scope="session", params=["memory", "postgres"])
def portal(request: pytest.FixtureRequest, database: str) -> Iterator[Portal]:
    """A state of each engine on a loop of its own."""
    with Portal.open(database if request.param == "postgres" else "memory:") as opened:
        yield opened


@pytest.fixture
def state(portal: Portal) -> State:
    """A tenant of this test."""

    async def tenant() -> State:
        return portal.state.for_tenant(new_ref())

    return portal.run(tenant())
