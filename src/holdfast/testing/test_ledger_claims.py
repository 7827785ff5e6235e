"""The promises of ``LeaseLedger``: claims, heartbeats, recovery and the fence."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import (
    LONG,
    brought_to,
    claimed,
    found,
    leased,
    submitted,
    texts,
)
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import InvalidInputError, LeaseLostError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TERMINAL, WAITING, TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _claims(store: Any, **how: Any) -> list[str]:
    return [one.task.id for one in await store.claim("w1", **{"limit": 100, **how})]


async def test_a_claimed_task_is_working_with_the_lease_on_it(store: Any) -> None:
    task = await submitted(store)
    [one] = await store.claim("w1", lease_seconds=20)
    assert one.task.id == one.lease.task_id == task.id
    assert (one.task.state, one.task.worker, one.lease.worker) == (TaskState.WORKING, "w1", "w1")
    assert one.lease.expires_at == one.task.updated_at + timedelta(seconds=20)
    assert one.task.lease_expires_at == one.lease.expires_at
    assert one.task == await found(store, task)


async def test_a_claim_raises_the_fence_and_the_attempts_by_one(store: Any) -> None:
    await submitted(store)
    for count in (1, 2, 3):
        one = await claimed(store)
        assert (one.task.fence, one.lease.fence, one.task.attempts) == (count, count, count)
        await store.transition(one.lease, "submitted")


async def test_a_claimed_task_comes_with_its_messages(store: Any) -> None:
    lease = await leased(store)
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    await store.respond(lease.task_id, ChatMessage.user("this"))
    one = await claimed(store)
    assert texts(one.task.messages) == ["Tides of Brest?", "which?", "this"]
    await store.release(one.lease)
    assert texts((await claimed(store, messages_limit=1)).task.messages) == ["this"]


async def test_the_task_that_has_waited_longest_is_claimed_first(
    harness: Harness, store: Any
) -> None:
    late = await submitted(store, run_after=timedelta(seconds=3))
    tasks = []
    for _ in range(3):
        tasks.append((await submitted(store)).id)
        await harness.elapse(2)
    assert await _claims(store) == [tasks[0], tasks[1], late.id, tasks[2]]


async def test_a_task_is_not_claimed_before_its_run_after(harness: Harness, store: Any) -> None:
    task = await submitted(store, run_after=timedelta(seconds=60))
    await harness.elapse(59)
    assert await _claims(store) == []
    await harness.elapse(1)
    assert await _claims(store) == [task.id]


async def test_a_claim_takes_at_most_limit_tasks(store: Any) -> None:
    tasks = [(await submitted(store)).id for _ in range(5)]
    assert await _claims(store, limit=2) == tasks[:2]
    assert await _claims(store, limit=10) == tasks[2:]


async def test_a_limit_of_zero_claims_nothing(store: Any) -> None:
    await submitted(store)
    assert await _claims(store, limit=0) == []


async def test_only_tasks_of_the_named_agents_are_claimed(store: Any) -> None:
    writer, reader, _ = [
        (await submitted(store, agent=agent)).id for agent in ("writer", "reader/a1", "cook")
    ]
    assert await _claims(store, agents=["writer", AgentId("reader", "a1")]) == [writer, reader]


async def test_an_empty_list_of_agents_claims_nothing(store: Any) -> None:
    await submitted(store)
    assert await _claims(store, agents=[]) == []


async def test_50_concurrent_claims_of_20_tasks_give_each_once(store: Any) -> None:
    tasks = [(await submitted(store)).id for _ in range(20)]
    batches = await asyncio.gather(*(store.claim(f"w{at}") for at in range(50)))
    assert sorted(one.task.id for batch in batches for one in batch) == sorted(tasks)
    assert all(one.lease.fence == 1 for batch in batches for one in batch)
    await check_invariants(store, submitted=20)


async def test_one_tenant_never_claims_anothers_tasks(harness: Harness, store: Any) -> None:
    other = harness.store(CONTRACT, tenant="other")
    lease = await leased(store)
    await submitted(store)
    assert await other.claim("w1") == []
    with pytest.raises(LeaseLostError):
        await other.heartbeat(lease)
    await harness.elapse(LONG)
    assert await other.recover_expired() == []


async def test_a_claim_takes_at_most_one_task_of_a_context(store: Any) -> None:
    first = await submitted(store, session_id="c1")
    await submitted(store, session_id="c1")
    other = await submitted(store, session_id="c2")
    assert await _claims(store) == [first.id, other.id]


async def test_a_context_at_work_is_skipped_until_its_task_leaves_working(store: Any) -> None:
    first, second = [await submitted(store, session_id="c1") for _ in range(2)]
    [one] = await store.claim("w1")
    assert one.task.id == first.id
    assert await _claims(store) == []
    await store.transition(one.lease, "input-required")
    assert (await claimed(store)).task.id == second.id


async def test_without_serial_contexts_tasks_of_one_context_run_side_by_side(store: Any) -> None:
    tasks = [(await submitted(store, session_id="c1")).id for _ in range(3)]
    assert await _claims(store, limit=2, serial_contexts=False) == tasks[:2]
    assert await _claims(store) == []
    assert await _claims(store, serial_contexts=False) == tasks[2:]


async def test_contexts_of_different_owners_do_not_wait_for_each_other(store: Any) -> None:
    tasks = [(await submitted(store, session_id="c1", owner=who)).id for who in ("ana", "ben")]
    assert await _claims(store) == tasks


async def test_a_workers_name_and_lease_seconds_are_checked_before_anything_is_claimed(
    store: Any,
) -> None:
    task = await submitted(store)
    for worker, how in (
        ("", {}),
        ("w1", {"lease_seconds": 0}),
        ("w1", {"limit": -1}),
        ("w1", {"agents": "writer"}),
        ("w1", {"messages_limit": -1}),
    ):
        with pytest.raises(InvalidInputError):
            await store.claim(worker, **how)
    assert (await found(store, task)).state is TaskState.SUBMITTED


async def test_a_heartbeat_extends_the_lease(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    await harness.elapse(20)
    extended = await store.heartbeat(lease, lease_seconds=25)
    gained = extended.expires_at - lease.expires_at
    assert timedelta(seconds=15) <= gained < timedelta(seconds=20)
    assert (await found(store, lease.task_id)).lease_expires_at == extended.expires_at
    await harness.elapse(24)
    assert await store.recover_expired() == []
    await harness.elapse(1)
    assert len(await store.recover_expired()) == 1


async def test_a_heartbeat_reports_a_requested_cancel_and_a_requested_pause(
    store: Any,
) -> None:
    lease = await leased(store)
    quiet = await store.heartbeat(lease)
    assert (quiet.cancel_requested, quiet.pause_requested) == (False, False)
    await store.pause(lease.task_id)
    await store.cancel(lease.task_id)
    reply = await store.heartbeat(lease)
    assert (reply.cancel_requested, reply.pause_requested) == (True, True)


async def test_a_lease_that_expired_but_was_not_recovered_is_still_good(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await harness.elapse(LONG)
    await store.append_message(lease, ChatMessage.assistant("late, but first"))
    await store.heartbeat(lease)
    assert await store.recover_expired() == []
    await store.transition(lease, "completed")


async def test_a_task_whose_lease_has_not_expired_is_not_recovered(
    harness: Harness, store: Any
) -> None:
    await leased(store)
    await harness.elapse(29.5)
    assert await store.recover_expired() == []
    await harness.elapse(0.5)
    assert len(await store.recover_expired()) == 1


async def test_after_the_clock_went_back_a_dead_workers_task_waits_for_one_lease_at_most(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await harness.turn_back(LONG)
    assert await store.recover_expired() == []
    await harness.elapse(29)
    assert await store.recover_expired() == []
    await harness.elapse(2)
    [task] = await store.recover_expired()
    assert (task.id, task.state) == (lease.task_id, TaskState.SUBMITTED)
    # It keeps its place in the queue, but does not wait there for the old time.
    assert (await claimed(store, "w2")).task.id == lease.task_id


async def test_after_the_clock_went_back_a_worker_that_lives_keeps_its_task(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await harness.turn_back(LONG)
    for _ in range(5):
        assert await store.recover_expired() == []
        await harness.elapse(10)
        lease = await store.heartbeat(lease)
    await store.release(lease)
    assert (await claimed(store, "w2")).task.id == lease.task_id


async def test_a_task_whose_lease_expired_goes_back_to_the_queue_with_the_reason(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await harness.elapse(LONG)
    [task] = await store.recover_expired()
    assert (task.id, task.state) == (lease.task_id, TaskState.SUBMITTED)
    assert "w1" in task.note
    assert (task.worker, task.lease_expires_at) == ("", None)
    assert (await claimed(store, "w2")).task.id == lease.task_id


async def test_an_expired_task_at_max_attempts_is_failed_with_the_reason(
    harness: Harness, store: Any
) -> None:
    await submitted(store, max_attempts=2)
    recovered = []
    for _ in range(2):
        await claimed(store)
        await harness.elapse(LONG)
        recovered += await store.recover_expired()
    first, task = recovered
    assert (first.state, task.state) == (TaskState.SUBMITTED, TaskState.FAILED)
    assert "2 attempts" in task.note
    assert "w1" in task.note
    assert await store.claim("w1") == []


async def test_an_expired_task_with_a_cancel_requested_is_canceled(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store, max_attempts=1)
    await store.cancel(lease.task_id)
    await harness.elapse(LONG)
    [task] = await store.recover_expired()
    assert task.state is TaskState.CANCELED


async def test_an_expired_task_with_a_pause_requested_is_paused(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await store.pause(lease.task_id)
    await harness.elapse(LONG)
    [task] = await store.recover_expired()
    assert (task.state, task.pause_requested) == (TaskState.PAUSED, False)


async def test_at_most_limit_tasks_are_recovered_the_longest_expired_first(
    harness: Harness, store: Any
) -> None:
    tasks = []
    for lease_seconds in (30, 10, 20):
        tasks.append((await submitted(store)).id)
        await store.claim("w1", lease_seconds=lease_seconds)
    await harness.elapse(LONG)
    assert await store.recover_expired(limit=0) == []
    assert [task.id for task in await store.recover_expired(limit=2)] == [tasks[1], tasks[2]]
    assert [task.id for task in await store.recover_expired()] == [tasks[0]]


async def test_10_concurrent_recoveries_give_each_task_once(harness: Harness, store: Any) -> None:
    for _ in range(5):
        await submitted(store)
    await store.claim("w1", limit=5)
    await harness.elapse(LONG)
    batches = await asyncio.gather(*(store.recover_expired() for _ in range(10)))
    assert len({task.id for batch in batches for task in batch}) == 5
    assert sum(map(len, batches)) == 5
    await check_invariants(store, submitted=5)


WRITES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("heartbeat", (), {}),
    ("append_message", (ChatMessage.assistant("a ghost speaks"),), {}),
    ("append_message", (ChatMessage.assistant("boo"),), {"step": StepKey("s", kind="say")}),
    ("record_step", (StepKey("ghost"), 1), {}),
    ("append_artifact", ("a1", [TextBlock("ghost")]), {}),
    ("restore_artifacts", (StepKey("s1"),), {}),
    ("transition", ("completed",), {"message": ChatMessage.assistant("done")}),
    ("transition", ("submitted",), {"progress": True}),
    ("release", (), {}),
]
"""Every write that a worker can make."""


async def _nothing_is_written(store: Any, lease: Lease, key: str) -> None:
    before = await found(store, key)
    for write, given, how in WRITES:
        with pytest.raises(LeaseLostError):
            await getattr(store, write)(lease, *given, **how)
    assert await found(store, key) == before


async def test_after_a_lease_is_taken_over_no_write_of_the_old_holder_takes_effect(
    harness: Harness, store: Any
) -> None:
    old = await leased(store)
    await store.append_artifact(old, "a1", [TextBlock("mine")], step=StepKey("s1"))
    await store.record_step(old, StepKey("s1"), 1)
    await harness.elapse(LONG)
    await store.recover_expired()
    await _nothing_is_written(store, old, old.task_id)
    new = (await claimed(store, "w2")).lease
    await _nothing_is_written(store, old, old.task_id)
    await store.transition(new, "completed")
    await check_invariants(store, submitted=1)


async def test_a_lease_is_lost_when_its_task_leaves_working(store: Any) -> None:
    for state in (TaskState.SUBMITTED, TaskState.PAUSED, *sorted(WAITING), *sorted(TERMINAL)):
        lease = await leased(store)
        await store.transition(lease, state)
        await _nothing_is_written(store, lease, lease.task_id)
        await store.cancel(lease.task_id)


async def test_a_lease_with_another_fence_or_an_unknown_task_is_lost(store: Any) -> None:
    lease = await leased(store)
    for fence in (0, lease.fence + 1):
        await _nothing_is_written(store, replace(lease, fence=fence), lease.task_id)
    await _nothing_is_written(store, replace(lease, task_id="no such task"), lease.task_id)
    await brought_to(store, TaskState.COMPLETED)
    await store.heartbeat(lease)


async def test_attempts_never_exceed_max_attempts_however_workers_die(
    harness: Harness, store: Any
) -> None:
    task = await submitted(store, max_attempts=3)
    for claims in range(1, 6):
        one = await claimed(store)
        assert one.task.attempts <= 3
        if claims == 2:
            await store.record_step(one.lease, StepKey("s1"), 1)
        if claims % 2:
            await store.transition(one.lease, "submitted", note="it broke")
        else:
            await harness.elapse(LONG)
            await store.recover_expired()
        await check_invariants(store, submitted=1)
    assert await store.claim("w1") == []
    assert (await found(store, task)).state is TaskState.FAILED


async def test_leases_and_the_queue_are_still_there_after_a_reopen(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    queued = await submitted(store)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert (await claimed(again, "w2")).task.id == queued.id
    await again.append_message(lease, ChatMessage.assistant("still mine"))
    await harness.elapse(LONG)
    assert len(await again.recover_expired()) == 2
