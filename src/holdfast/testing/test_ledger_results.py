"""The promises of ``ResultLedger``, and the results that workers report."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import claimed, found, leased, submitted
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.lifecycle import TaskState

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_result_of_a_completed_task_comes_back_exactly_as_it_went_in(store: Any) -> None:
    results: list[Any] = [False, 0, -0.0, "", "a\x00b", [], {}, {"b": 1, "a": [{"z": None}]}]
    for result in results:
        lease = await leased(store)
        assert (await found(store, lease.task_id)).result is None
        done = await store.transition(lease, "completed", result=result)
        assert repr(done.result) == repr(result)
        task = await found(store, lease.task_id)
        assert repr(task.result) == repr(result)
        assert await store.replay(task.id, task.version) == replace(task, lease_expires_at=None)
        before = await store.replay(task.id, task.version - 1)
        assert (before.state, before.result) == (TaskState.WORKING, None)
    listed = (await store.list()).tasks
    assert [repr(task.result) for task in listed] == [repr(one) for one in reversed(results)]
    lease = await leased(store)
    assert (await store.transition(lease, "completed")).result is None
    await check_invariants(store)


async def test_a_result_that_is_not_json_is_refused_by_its_path_and_the_task_stays_as_it_is(
    store: Any,
) -> None:
    lease = await leased(store)
    before = await found(store, lease.task_id)
    with pytest.raises(InvalidInputError, match=r"result\.at\[0\]"):
        await store.transition(lease, "completed", result={"at": [{1, 2}]})
    assert await found(store, lease.task_id) == before


async def test_a_result_goes_only_with_completed(store: Any) -> None:
    lease = await leased(store)
    for state in ("failed", "submitted", "input-required", "canceled"):
        with pytest.raises(InvalidInputError, match="result"):
            await store.transition(lease, state, result=1)
    assert (await store.transition(lease, "completed", result=1)).result == 1


async def test_a_task_that_was_canceled_instead_has_no_result(store: Any) -> None:
    lease = await leased(store)
    await store.cancel(lease.task_id)
    done = await store.transition(lease, "completed", result=1)
    assert (done.state, done.result) == (TaskState.CANCELED, None)
    assert (await found(store, lease.task_id)).result is None


async def test_wait_gives_the_task_once_it_has_ended(store: Any) -> None:
    lease = await leased(store)
    waiting = asyncio.ensure_future(store.wait(lease.task_id))
    await store.append_message(lease, ChatMessage.assistant("on it"))
    await asyncio.sleep(0)
    assert not waiting.done()
    ended = await store.transition(lease, "completed", result={"pages": 3})
    done = await waiting
    assert done == ended
    assert (done.state, done.result, done.messages) == (TaskState.COMPLETED, {"pages": 3}, [])


async def test_wait_of_an_ended_task_is_at_once(store: Any) -> None:
    task = await submitted(store)
    await store.cancel(task.id, note="no longer needed")
    done = await store.wait(task.id)
    assert (done.state, done.note) == (TaskState.CANCELED, "no longer needed")


async def test_wait_ends_by_its_timeout_and_the_task_goes_on(store: Any) -> None:
    task = await submitted(store)
    with pytest.raises(TimeoutError, match="has not ended after"):
        await store.wait(task.id, timeout_seconds=0.01)
    for wrong in (0, -1, "1", float("inf")):
        with pytest.raises(InvalidInputError, match="timeout_seconds"):
            await store.wait(task.id, timeout_seconds=wrong)
    assert await found(store, task) == replace(task, messages=(await found(store, task)).messages)
    lease = (await claimed(store)).lease
    await store.transition(lease, "completed")
    assert (await store.wait(task.id, timeout_seconds=600)).state is TaskState.COMPLETED


async def test_wait_of_an_unknown_task_or_another_owners_is_not_found(store: Any) -> None:
    task = await submitted(store, owner="ana")
    await store.cancel(task.id)
    for key, owner in (("nothing", None), (task.id, "ben"), (task.id, "")):
        for seconds in (None, 1e-9):
            with pytest.raises(NotFoundError):
                await store.wait(key, owner=owner, timeout_seconds=seconds)
    assert (await store.wait(task.id, owner="ana")).id == task.id
    assert (await store.wait(task.id, timeout_seconds=1e-9)).id == task.id


async def test_every_waiter_of_a_task_gets_its_end(store: Any) -> None:
    lease = await leased(store)
    waiters = [asyncio.ensure_future(store.wait(lease.task_id)) for _ in range(5)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    await store.complete_many([lease])
    ends = await asyncio.gather(*waiters[1:])
    assert {one.state for one in ends} == {TaskState.COMPLETED}


async def test_wait_of_a_task_that_is_deleted_meanwhile_is_not_found(store: Any) -> None:
    task = await submitted(store, session_id="c1")
    waiting = asyncio.ensure_future(store.wait(task.id))
    await asyncio.sleep(0)
    await store.clear_context("c1")
    with pytest.raises(NotFoundError):
        await waiting


async def test_submit_and_wait_gives_the_ended_task_with_its_result(store: Any) -> None:
    waiting = asyncio.ensure_future(
        store.submit_and_wait("writer", ChatMessage.user("Tides?"), owner="ana", metadata={"n": 1})
    )
    taken: list[Any] = []
    while not taken:
        await asyncio.wait({waiting}, timeout=0.001)
        taken = await store.claim("w1")
    lease = taken[0].lease
    await store.transition(lease, "completed", result=7)
    done = await waiting
    assert (done.id, done.owner, done.metadata, done.result) == (lease.task_id, "ana", {"n": 1}, 7)
    with pytest.raises(InvalidInputError, match="timeout_seconds"):
        await store.submit_and_wait("writer", ChatMessage.user("Tides?"), timeout_seconds=0)
    assert len((await store.list()).tasks) == 1


async def test_submit_and_wait_again_with_the_same_key_waits_for_the_same_task(store: Any) -> None:
    hello = ChatMessage.user("hello")
    with pytest.raises(TimeoutError):
        await store.submit_and_wait("writer", hello, submit_key="k1", timeout_seconds=0.01)
    lease = (await claimed(store)).lease
    await store.transition(lease, "completed", result="done")
    done = await store.submit_and_wait("writer", hello, submit_key="k1", timeout_seconds=10)
    assert (done.id, done.result) == (lease.task_id, "done")
