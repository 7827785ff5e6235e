"""The contract suite runs on our own engines as it does on anyone's."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from holdfast.testing.harness import Harness
from holdfast.testing.suite import load_harness
from tests.engines.kept_engines import kept_engines

pytest_plugins = ["holdfast.testing.suite"]

THOROUGH = (
    # Faults: kills at any moment, of what is made, moved, worked on or served.
    "tests/chaos/",
    "tests/cli/test_chaos.py",
    "tests/durability/",
    "tests/erasure/test_residue.py",
    "tests/erasure/test_residue_objects.py",
    "tests/archives/test_killed.py",
    "tests/engines/test_embedded_guard.py",
    "tests/engines/test_embedded_making.py",
    "tests/engines/test_embedded_revival.py",
    # Hostile input on every engine, and to a service for long.
    "src/holdfast/testing/test_hostile_input.py",
    "tests/server/test_hostile_clients.py",
    # What runs the suite once more: mutants, plug-ins, a pooler, the wheel.
    "tests/mutants/",
    "tests/engines/test_plugin.py",
    "tests/engines/test_pooler.py",
    "tests/engines/test_postgres_conditions.py",
    "tests/engines/test_postgres_forgetful.py",
    "tests/engines/test_published_suite.py",
    "tests/engines/test_real_redis.py",
    # Apache AGE.
    "tests/cli/test_graph.py",
    "tests/engines/test_age",
    # Benchmarks, tutorials and the browser.
    "tests/bench/",
    "tests/cli/test_bench.py",
    "tests/memory/test_recall_bench.py",
    "tests/architecture/test_tutorials.py",
    "tests/studio/test_browser.py",
)
"""What ``make test`` leaves to ``make test-all``."""

# No test depends on how much fits into a second, also not those that make up their input. They make
# up the same input in each run, so that a failure comes with the change that caused it; `make
# test-long` looks for new failures with other input.
settings.register_profile(
    "same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "other", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=1_000
)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The long form of the fault runs is asked for; it takes many minutes."""
    parser.addoption("--long", action="store_true", help="run the long form of the fault runs")
    parser.addoption("--fast", action="store_true", help="leave out what `make test-all` adds")
    parser.addoption(
        "--tested",
        action="append",
        default=[],
        metavar="MODULE:HARNESS",
        help="leave out what --fast ran, here on this engine (repeatable)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """With ``--long``, tests that make up their input make up more, and another one each time."""
    if config.getoption("--long"):
        settings.load_profile("other")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the thorough tests with ``--fast``, and all others with ``--tested``."""
    tested = {load_harness(name) for name in config.getoption("--tested")}
    if config.getoption("--fast"):
        left_out = {item for item in items if _is_thorough(item)}
    elif tested:
        left_out = {item for item in items if _was_run(item, tested)}
    else:
        return
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_thorough(item: pytest.Item) -> bool:
    path = item.path.relative_to(item.config.rootpath).as_posix()
    return path.startswith(THOROUGH)


def _was_run(item: pytest.Item, tested: set[type[Harness]]) -> bool:
    """Whether ``--fast`` has run a test on these engines, and not only with fewer steps."""
    if _is_thorough(item):
        return False
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    if "machine" in params:
        return False
    return "harness_class" not in params or params["harness_class"] in tested


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def engines() -> AsyncIterator[None]:
    """Engines stay connected from test to test."""
    async with kept_engines():
        yield
