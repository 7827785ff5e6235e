"""How pytest runs the contract suite: the ``--engine`` option and the stores as fixtures."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from holdfast.testing.harness import CONTRACTS, STATE_VERSIONS, Harness
from holdfast.testing.inmemory import InMemoryHarness


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--engine`` and ``--machine-steps``."""
    group = parser.getgroup("holdfast", "the Holdfast contract suite")
    group.addoption(
        "--engine",
        action="append",
        default=[],
        metavar="MODULE:HARNESS",
        help="run the contract suite on this engine (repeatable; default: the in-memory engine)",
    )
    group.addoption(
        "--machine-steps",
        type=int,
        default=1000,
        metavar="N",
        help="Hypothesis steps of each state machine (default: 1000)",
    )


def load_harness(name: str) -> type[Harness]:
    """The harness class that ``module:attribute`` names."""
    module_name, colon, attribute = name.partition(":")
    if not colon:
        raise pytest.UsageError(f"--engine {name}: write it as module:HarnessClass")
    try:
        found: Any = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"--engine {name}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Harness)):
        raise pytest.UsageError(f"--engine {name}: not a subclass of holdfast.testing.Harness")
    unknown = found.contracts - set(CONTRACTS)
    if unknown:
        raise pytest.UsageError(f"--engine {name}: unknown contracts {', '.join(sorted(unknown))}")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each engine that provides its module's ``CONTRACT``."""
    if "harness_class" not in metafunc.fixturenames:
        return
    names = metafunc.config.getoption("--engine")
    engines = [load_harness(name) for name in names] or [InMemoryHarness]
    contract = metafunc.module.CONTRACT
    fitting = [engine for engine in engines if contract is None or contract in engine.contracts]
    metafunc.parametrize("harness_class", fitting, ids=[engine.name for engine in fitting])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker ``needs``."""
    config.addinivalue_line(
        "markers", "needs(contract): runs on engines that provide this contract, or STATE_VERSIONS"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of contracts that an engine does not provide."""
    absent = [item for item in items if not _is_provided(item)]
    if absent:
        config.hook.pytest_deselected(items=absent)
        items[:] = [item for item in items if _is_provided(item)]


def _is_provided(item: pytest.Item) -> bool:
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    if "harness_class" not in params:
        return True
    engine = params["harness_class"]
    if not (isinstance(engine, type) and issubclass(engine, Harness)):
        # No engine provides the contract, so there is nothing to run on.
        return False
    if getattr(item, "originalname", "") in engine.without:
        return False
    provided = engine.contracts | ({STATE_VERSIONS} if engine.state_versions else set())
    if "machine" in params:
        provided &= engine.reference().contracts
        return bool(params["machine"].contract in provided)
    needed = {params["contract"]} if "contract" in params else set()
    needed |= {mark.args[0] for mark in item.iter_markers("needs")}
    return needed <= provided


@pytest_asyncio.fixture(loop_scope="session")
async def harness(harness_class: type[Harness]) -> AsyncIterator[Harness]:
    """One engine, empty, for one test."""
    engine = harness_class()
    await engine.open()
    yield engine
    await engine.close()


@pytest.fixture
def store(request: pytest.FixtureRequest, harness: Harness) -> Any:
    """The store of the module's ``CONTRACT`` for the default tenant."""
    return harness.store(request.module.CONTRACT)
