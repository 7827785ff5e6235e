"""The framework's own conformance kit: every test of every capability, counted by name."""

from __future__ import annotations

from typing import Any

import pytest

WHY = "LangGraph is not installed here: make test-adapters"
conformance = pytest.importorskip("langgraph.checkpoint.conformance", reason=WHY)

from holdfast import State  # noqa: E402 - after the skip
from holdfast.adapters.langgraph import HoldfastSaver  # noqa: E402
from holdfast.values.ids import new_ref  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="session")
TESTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


async def test_all_81_tests_of_all_8_capabilities_pass(state: State) -> None:
    @conformance.checkpointer_test(name="holdfast")
    async def made() -> Any:
        yield HoldfastSaver(state.for_tenant(new_ref()))

    report = await conformance.validate(made, progress=None)
    failures = {name: one.failures for name, one in report.results.items() if one.failures}
    assert failures == {}
    # "Passed all" is also true when a capability is not there.
    assert {name for name, one in report.results.items() if one.detected} == set(TESTS)
    assert {name: one.tests_passed for name, one in report.results.items()} == TESTS
    assert sum(TESTS.values()) == 81
