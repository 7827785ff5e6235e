"""Promises of ``LeaseLedger``: versions of handlers and apps."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import found, submitted
from holdfast.values.errors import InvalidInputError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import Transition

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _claim(store: Any, *versions: str, **how: Any) -> list[Any]:
    known = {"writer": list(versions)} if versions else None
    claimed = await store.claim("w1", versions=known, limit=10, **how)
    assert isinstance(claimed, list)
    return claimed


async def test_a_task_gets_the_first_version_of_its_agent_with_its_first_claim(
    store: Any,
) -> None:
    task = await submitted(store)
    assert task.handler_version == ""
    [claimed] = await _claim(store, "2", "1")
    assert claimed.task.handler_version == "2"
    assert (await found(store, task.id)).handler_version == "2"
    await store.release(claimed.lease)
    [again] = await _claim(store, "3", "2")
    assert again.task.handler_version == "2"
    assert (await store.list(limit=1)).tasks[0].handler_version == "2"
    await check_invariants(store)


async def test_a_task_that_began_with_a_version_is_claimed_only_where_that_version_is_known(
    store: Any,
) -> None:
    task = await submitted(store)
    [first] = await _claim(store, "1")
    await store.release(first.lease)
    for others in ((), ("2",), ("11",), ("2", "3")):
        assert await _claim(store, *others) == []
    assert await store.claim("w1", versions={"reader": ["1"]}) == []
    assert (await found(store, task.id)).state is TaskState.SUBMITTED
    [second] = await _claim(store, "2", "1")
    assert second.task.id == task.id
    await store.release(second.lease)
    # What began without a version goes on wherever it is claimed.
    plain = await submitted(store)
    [claimed] = await _claim(store)
    assert (claimed.task.id, claimed.task.handler_version) == (plain.id, "")
    await store.release(claimed.lease)
    [claimed] = await _claim(store, "2")
    assert (claimed.task.id, claimed.task.handler_version) == (plain.id, "2")


@pytest.mark.parametrize("serial", [True, False])
@pytest.mark.parametrize("priority", [0, 3])
async def test_a_task_of_an_unknown_version_holds_up_no_other_task(
    store: Any, serial: bool, priority: int
) -> None:
    held = await submitted(store, session_id="c1", priority=priority)
    [first] = await _claim(store, "1")
    await store.release(first.lease)
    behind = await submitted(store, session_id="c1", priority=priority)
    apart = await submitted(store, session_id="c2", priority=priority)
    claimed = await _claim(store, "2", serial_contexts=serial)
    assert {one.task.id for one in claimed} == {behind.id, apart.id}
    assert (await found(store, held.id)).state is TaskState.SUBMITTED


async def test_a_claim_stores_the_version_of_the_app_with_its_attempt(store: Any) -> None:
    task = await submitted(store)
    for version in ("1.0", "1.1", None):
        [claimed] = await _claim(store, app_version=version)
        [worker] = await store.workers()
        assert (worker.name, worker.version) == ("w1", version or "")
        await store.release(claimed.lease)
    moves = [one.body for one in await store.events(task.id) if isinstance(one.body, Transition)]
    assert [one.app_version for one in moves if one.to_state == "working"] == ["1.0", "1.1", ""]
    assert {one.app_version for one in moves if one.to_state != "working"} == {""}


async def test_versions_and_app_version_are_checked_before_anything_is_claimed(
    store: Any,
) -> None:
    task = await submitted(store)
    wrong: Any
    for wrong in (
        *([], "writer", {"writer": "1"}, {"writer": []}, {"writer": [""]}),
        *({"writer": ["1", "1"]}, {"writer": ["a\n"]}, {"writer": [1]}, {"": ["1"]}),
        {"writer": [str(one) for one in range(101)]},
    ):
        with pytest.raises(InvalidInputError):
            await store.claim("w1", versions=wrong)
    for wrong in ("a\n", 7, "x" * 600):
        with pytest.raises(InvalidInputError, match="app_version"):
            await store.claim("w1", app_version=wrong)
    assert (await found(store, task.id)).state is TaskState.SUBMITTED
