"""The promises of ``ChildLedger``: tasks that other tasks submit and wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import found, leased, next_lease
from holdfast.values.content import ChatMessage
from holdfast.values.errors import (
    ConflictError,
    InvalidInputError,
    LeaseLostError,
    NotFoundError,
)
from holdfast.values.lifecycle import TaskState
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


async def test_a_child_has_its_parents_owner_and_names_its_parent(store: Any) -> None:
    lease = await leased(store, owner="ana")
    child = await _child(store, lease, metadata={"n": 1}, max_attempts=2)
    assert (child.owner, child.parent_id, str(child.agent)) == ("ana", lease.task_id, "reader")
    assert (child.metadata, child.max_attempts, child.state) == ({"n": 1}, 2, TaskState.SUBMITTED)
    stored = await found(store, child)
    assert stored.parent_id == lease.task_id
    assert [one.text for one in stored.messages] == ["chapter"]
    [taken] = await store.claim("w2", agents=["reader"])
    assert taken.task.parent_id == lease.task_id
    [step] = await store.steps(lease.task_id)
    assert (step.key, step.result) == (_key(), {"task_id": child.id})
    again = await store.replay(child.id, stored.version)
    assert again.parent_id == lease.task_id
    assert (await found(store, lease.task_id)).parent_id == ""
    for change in (store.pause, store.cancel):
        assert (await change(child.id)).parent_id == lease.task_id
    await check_invariants(store, submitted=2)


async def test_a_child_has_a_context_of_its_own_unless_it_is_given_one(store: Any) -> None:
    lease = await leased(store, session_id="c1")
    own = await _child(store, lease, 1)
    shared = await _child(store, lease, 2, session_id="c1")
    assert own.session_id not in ("", "c1")
    assert shared.session_id == "c1"
    with pytest.raises(InvalidInputError, match="session_id"):
        await _child(store, lease, 3, session_id="holdfast.c1")


async def test_a_child_is_submitted_once_under_its_step_key(harness: Harness, store: Any) -> None:
    first = await leased(store)
    child = await _child(store, first)
    # The worker dies after the submit, and before it could wait.
    second = await next_lease_of_writer(harness, store)
    again = await _child(store, second)
    assert again.id == child.id
    other = await _child(store, second, 2)
    assert other.id != child.id
    assert len((await store.list(agent="reader")).tasks) == 2
    assert len(await store.steps(first.task_id)) == 2


async def next_lease_of_writer(harness: Harness, store: Any) -> Lease:
    """The lease of the parent's next attempt, after its holder died."""
    await harness.elapse(1000)
    await store.recover_expired()
    [one] = await store.claim("w2", agents=["writer"])
    lease: Lease = one.lease
    return lease


async def test_a_child_under_a_stored_step_key_with_other_arguments_is_a_conflict_and_nothing_is_written(  # noqa: E501
    store: Any,
) -> None:
    lease = await leased(store)
    await _child(store, lease)
    before = await found(store, lease.task_id)
    for agent, message, how in (
        ("editor", WORK, {}),
        ("reader", ChatMessage.user("another"), {}),
        ("reader", WORK, {"metadata": {"n": 1}}),
        ("reader", WORK, {"session_id": "c1"}),
    ):
        with pytest.raises(ConflictError):
            await store.submit_child(lease, _key(), agent, message, **how)
    assert await found(store, lease.task_id) == before
    assert len((await store.list()).tasks) == 2


async def test_a_stale_worker_submits_no_child(harness: Harness, store: Any) -> None:
    stale = await leased(store)
    await next_lease(harness, store)
    with pytest.raises(LeaseLostError):
        await _child(store, stale)
    with pytest.raises(LeaseLostError):
        await _waits(store, stale)
    assert len((await store.list()).tasks) == 1


async def test_10_concurrent_submits_of_one_child_make_one(store: Any) -> None:
    lease = await leased(store)
    made = await asyncio.gather(*(_child(store, lease) for _ in range(10)))
    assert len({one.id for one in made}) == 1
    assert len((await store.list(agent="reader")).tasks) == 1
    await check_invariants(store, submitted=2)


async def test_a_task_that_was_asked_to_cancel_submits_no_child(store: Any) -> None:
    lease = await leased(store)
    child = await _child(store, lease)
    await store.cancel(lease.task_id)
    with pytest.raises(ConflictError, match="asked to cancel"):
        await _child(store, lease, 2)
    assert (await _child(store, lease)).id == child.id
    assert len((await store.list(agent="reader")).tasks) == 1


async def test_the_children_of_a_task_are_listed_in_the_order_of_their_ids_page_by_page(
    store: Any,
) -> None:
    lease = await leased(store)
    made = [(await _child(store, lease, at)).id for at in range(1, 6)]
    await _ended(store, result={"n": 1})
    whole = await store.children(lease.task_id)
    assert [one.id for one in whole.tasks] == sorted(made)
    assert whole.next_cursor is None
    assert [one.result for one in whole.tasks].count({"n": 1}) == 1
    pages, cursor = list[str](), None
    while True:
        page = await store.children(lease.task_id, limit=2, cursor=cursor)
        pages += [one.id for one in page.tasks]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == sorted(made)
    assert (await store.children(lease.task_id, limit=0)).tasks == []
    assert (await store.children(made[0])).tasks == []
    assert (await store.children("nothing")).tasks == []


async def test_a_list_without_children_has_and_counts_only_tasks_that_no_task_submitted(
    store: Any,
) -> None:
    lease = await leased(store, owner="ana")
    other = await store.submit("writer", WORK, owner="ana")
    for number in range(3):
        await _child(store, lease, number + 1)
    clients = {lease.task_id, other.id}
    for order in ("newest", "oldest"):
        page = await store.list(owner="ana", children=False, count=True, order=order, limit=1)
        rest = await store.list(
            owner="ana", children=False, order=order, cursor=page.next_cursor, max_bytes=10_000
        )
        assert {one.id for one in (*page.tasks, *rest.tasks)} == clients
        assert (page.total, len(page.tasks), rest.next_cursor) == (2, 1, None)
    assert (await store.list(owner="ana", count=True)).total == 5


async def test_contexts_that_only_children_have_are_left_out_of_a_list_without_children(
    store: Any,
) -> None:
    await store.submit("writer", WORK, session_id="c1", owner="ana")
    [claimed] = await store.claim("w1")
    await _child(store, claimed.lease, 1)
    await _child(store, claimed.lease, 2, session_id="c1")
    every = await store.list_contexts(owner="ana")
    shown = await store.list_contexts(owner="ana", children=False)
    assert {(one.id, one.tasks) for one in shown.contexts} == {("c1", 1)}
    assert len(every.contexts) == 2
    assert {one.tasks for one in every.contexts if one.id == "c1"} == {2}
    other = await store.submit("writer", WORK, session_id="c2", owner="ana")
    page = await store.list_contexts(owner="ana", children=False, limit=1)
    rest = await store.list_contexts(owner="ana", children=False, cursor=page.next_cursor)
    assert [one.id for one in (*page.contexts, *rest.contexts)] == ["c2", "c1"]
    await store.delete(other.id)


async def test_another_owners_children_are_not_found(store: Any) -> None:
    lease = await leased(store, owner="ana")
    child = await _child(store, lease)
    assert (await store.children(lease.task_id, owner="ben")).tasks == []
    assert [one.id for one in (await store.children(lease.task_id, owner="ana")).tasks] == [
        child.id
    ]
    with pytest.raises(NotFoundError):
        await store.cancel(lease.task_id, owner="ben", children=True)
    assert (await found(store, child)).state is TaskState.SUBMITTED


async def test_one_tenant_never_sees_anothers_children(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    child = await _child(store, lease)
    other = harness.store(CONTRACT, tenant="other")
    assert (await other.children(lease.task_id)).tasks == []
    with pytest.raises(NotFoundError):
        await other.cancel(lease.task_id, children=True)
    assert await other.get(child.id) is None


async def test_cancel_with_children_cancels_all_below_a_task(store: Any) -> None:
    lease = await leased(store)
    waiting, working, done = [await _child(store, lease, at) for at in (1, 2, 3)]
    taken = {one.task.id: one.lease for one in await store.claim("w9", agents=["reader"], limit=3)}
    below = await store.submit_child(taken[done.id], _key(), "editor", WORK)
    await store.transition(taken[done.id], "completed", result=1)
    await store.release(taken[waiting.id])
    stranger = await store.submit("editor", WORK)
    task = await store.cancel(lease.task_id, note="enough", children=True)
    assert (task.id, task.state, task.cancel_requested) == (
        lease.task_id,
        TaskState.WORKING,
        True,
    )
    states = {
        one: ((await found(store, one)).state, (await found(store, one)).cancel_requested)
        for one in (waiting.id, working.id, done.id, below.id, stranger.id)
    }
    assert states == {
        waiting.id: (TaskState.CANCELED, False),
        working.id: (TaskState.WORKING, True),
        done.id: (TaskState.COMPLETED, False),
        below.id: (TaskState.CANCELED, False),
        stranger.id: (TaskState.SUBMITTED, False),
    }
    assert (await found(store, below)).note == "enough"
    before = await found(store, working)
    again = await store.cancel(lease.task_id, note="enough", children=True)
    assert again.version == task.version
    assert await found(store, working) == before
    await check_invariants(store)


async def test_cancel_without_children_leaves_them_as_they_are(store: Any) -> None:
    lease = await leased(store)
    child = await _child(store, lease)
    await _waits(store, lease, child.id)
    await store.cancel(lease.task_id)
    assert (await found(store, child)).state is TaskState.SUBMITTED
    await store.cancel(lease.task_id, children=True)
    assert (await found(store, child)).state is TaskState.CANCELED


async def test_children_are_waited_for_only_with_submitted(store: Any) -> None:
    lease = await leased(store)
    child = await _child(store, lease)
    for state in ("completed", "failed", "input-required", "paused"):
        with pytest.raises(InvalidInputError, match="children"):
            await store.transition(lease, state, children=[child.id])
    for wrong in (child.id, [""], [1], None):
        with pytest.raises(InvalidInputError, match="children"):
            await store.transition(lease, "submitted", children=wrong)
    assert (await found(store, lease.task_id)).state is TaskState.WORKING


async def test_children_and_their_parent_are_still_there_after_a_reopen(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    child = await _child(store, lease)
    await _waits(store, lease, child.id)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert [one.id for one in (await again.children(lease.task_id)).tasks] == [child.id]
    assert await _parents(again) == []
    await _ended(again)
    assert len(await _parents(again)) == 1
