"""The promises of ``ChildLedger``: how a parent waits for its children."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import found, leased
from holdfast.values.content import ChatMessage
from holdfast.values.errors import (
    NotFoundError,
)
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease, TaskRecord

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

WORK = ChatMessage.user("chapter")


def _key(number: int = 1) -> StepKey:
    return StepKey("reader", number, "child")


async def _child(store: Any, lease: Lease, number: int = 1, **how: Any) -> TaskRecord:
    child: TaskRecord = await store.submit_child(lease, _key(number), "reader", WORK, **how)
    return child


async def _waits(store: Any, lease: Lease, *children: str) -> TaskRecord:
    task: TaskRecord = await store.transition(
        lease, "submitted", progress=True, children=list(children)
    )
    return task


async def _ended(store: Any, agent: str = "reader", **how: Any) -> str:
    """Claim the next task of an agent and complete it."""
    [one] = await store.claim("w9", agents=[agent])
    await store.transition(one.lease, "completed", **how)
    key: str = one.task.id
    return key


async def _parents(store: Any) -> list[Any]:
    found: list[Any] = await store.claim("w1", agents=["writer"], limit=10)
    return found


async def test_a_parent_that_waits_is_not_claimed_until_all_its_children_have_ended(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    children = [(await _child(store, lease, at)).id for at in (1, 2)]
    waiting = await _waits(store, lease, *children, *children)
    assert (waiting.state, waiting.attempts) == (TaskState.SUBMITTED, 0)
    await harness.elapse(1000)
    assert await _parents(store) == []
    await _ended(store)
    assert await _parents(store) == []
    await _ended(store)
    [again] = await _parents(store)
    assert (again.task.id, again.task.attempts) == (lease.task_id, 1)
    assert await _parents(store) == []
    await check_invariants(store)


async def test_a_child_may_end_in_any_way_and_its_parent_goes_on(
    harness: Harness, store: Any
) -> None:
    for state in sorted(TERMINAL):
        lease = await leased(store)
        child = await _child(store, lease, max_attempts=1)
        await _waits(store, lease, child.id)
        [one] = await store.claim("w9", agents=["reader"])
        if state is TaskState.FAILED:
            await harness.elapse(1000)
            await store.recover_expired()
        elif state is TaskState.COMPLETED:
            await store.complete_many([one.lease])
        else:
            await store.transition(one.lease, state)
        assert (await found(store, child)).state is state
        [again] = await _parents(store)
        await store.transition(again.lease, "completed")
    lease = await leased(store)
    child = await _child(store, lease)
    await _waits(store, lease, child.id)
    await store.cancel(child.id)
    assert [one.task.id for one in await _parents(store)] == [lease.task_id]


async def test_children_that_have_ended_before_the_parent_waits_are_not_waited_for(
    store: Any,
) -> None:
    lease = await leased(store)
    children = [(await _child(store, lease, at)).id for at in (1, 2)]
    first = await _ended(store)
    await _waits(store, lease, *children)
    assert await _parents(store) == []
    second = await _ended(store)
    assert sorted([first, second]) == sorted(children)
    [again] = await _parents(store)
    await _waits(store, again.lease, *children)
    assert len(await _parents(store)) == 1


async def test_a_parent_that_waits_only_for_ended_or_foreign_tasks_is_due_at_once(
    store: Any,
) -> None:
    other = await store.submit("editor", WORK)
    lease = await leased_writer(store)
    child = await _child(store, lease)
    await _ended(store)
    await _waits(store, lease, child.id, other.id, "nothing")
    assert [one.task.id for one in await _parents(store)] == [lease.task_id]


async def leased_writer(store: Any) -> Lease:
    """The lease on a new task of the writer."""
    await store.submit("writer", WORK)
    [one] = await _parents(store)
    lease: Lease = one.lease
    return lease


async def test_the_end_of_a_child_that_races_its_parents_wait_is_not_lost(store: Any) -> None:
    for _ in range(20):
        lease = await leased(store)
        children = [(await _child(store, lease, at)).id for at in (1, 2, 3)]
        taken = await store.claim("w9", agents=["reader"], limit=3)
        await asyncio.gather(
            store.complete_many([taken[0].lease]),
            _waits(store, lease, *children),
            store.transition(taken[1].lease, "completed"),
            store.cancel(taken[2].task.id),
        )
        await store.transition(taken[2].lease, "canceled")
        [again] = await _parents(store)
        await store.transition(again.lease, "completed")
    await check_invariants(store)


async def test_a_child_that_is_deleted_is_not_waited_for(store: Any) -> None:
    lease = await leased(store)
    first = await _child(store, lease, 1, session_id="c1")
    second = await _child(store, lease, 2)
    await _waits(store, lease, first.id, second.id)
    await store.clear_context("c1")
    assert await _parents(store) == []
    await store.delete(second.id)
    [again] = await _parents(store)
    assert again.task.id == lease.task_id
    with pytest.raises(NotFoundError):
        await _child(store, again.lease, 2)


async def test_a_parent_that_was_paused_while_its_child_ended_goes_on_when_it_is_resumed(
    store: Any,
) -> None:
    for ends in (True, False):
        lease = await leased(store)
        child = await _child(store, lease)
        await _waits(store, lease, child.id)
        await store.pause(lease.task_id)
        if ends:
            await _ended(store)
        assert await _parents(store) == []
        await store.resume(lease.task_id)
        # It looks again, and waits again if need be.
        [again] = await _parents(store)
        if not ends:
            await _waits(store, again.lease, child.id)
            assert await _parents(store) == []
            await _ended(store)
            [again] = await _parents(store)
        await store.transition(again.lease, "completed")


async def test_a_parent_that_waits_can_be_canceled(store: Any) -> None:
    lease = await leased(store)
    child = await _child(store, lease)
    await _waits(store, lease, child.id)
    assert (await store.cancel(lease.task_id)).state is TaskState.CANCELED
    await _ended(store)
    assert (await found(store, lease.task_id)).state is TaskState.CANCELED
    assert await _parents(store) == []
    await check_invariants(store)


async def test_a_child_in_its_parents_context_does_not_wait_for_its_parent(store: Any) -> None:
    lease = await leased(store, session_id="c1")
    child = await _child(store, lease, session_id="c1")
    assert await store.claim("w9", agents=["reader"]) == []
    await _waits(store, lease, child.id)
    assert await _ended(store) == child.id
    assert len(await _parents(store)) == 1


async def test_a_parent_waits_for_1000_children_and_is_due_once(store: Any) -> None:
    lease = await leased(store)
    children = list[str]()
    for start in range(1, 1001, 50):
        made = await asyncio.gather(*(_child(store, lease, start + at) for at in range(50)))
        children += [one.id for one in made]
    assert len(set(children)) == 1000
    await _waits(store, lease, *children)
    ended = 0
    while taken := await store.claim("w9", agents=["reader"], limit=100):
        assert await _parents(store) == []
        await asyncio.gather(
            *(store.complete_many([one.lease for one in taken[at::4]]) for at in range(4))
        )
        ended += len(taken)
    assert ended == 1000
    [again] = await _parents(store)
    assert again.task.id == lease.task_id
    assert await _parents(store) == []
    whole = await store.children(lease.task_id, limit=2000)
    assert {one.state for one in whole.tasks} == {TaskState.COMPLETED}
    assert len(whole.tasks) == 1000
