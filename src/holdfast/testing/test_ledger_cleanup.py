"""The promises of ``CleanupLedger``."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import LONG, claimed, leased, next_lease, submitted
from holdfast.values.errors import InvalidInputError, LeaseLostError
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _ended(store: TaskLedger, *refs: str, **how: Any) -> str:
    """The id of a completed task with the marks of some blobs."""
    lease = await leased(store, **how)
    for ref in refs:
        await store.add_cleanup(lease, "blob", ref)
    await store.transition(lease, "completed")
    return lease.task_id


async def test_the_marks_of_a_live_task_are_not_due(store: Any) -> None:
    lease = await leased(store)
    await store.add_cleanup(lease, "run", "c1", agent="team/writer")
    await store.add_cleanup(lease, "blob", "b1")
    assert await store.list_cleanup(lease.task_id) == []
    await store.transition(lease, "input-required")
    assert await store.list_cleanup(lease.task_id) == []
    assert await store.claim_cleanup() == []


async def test_the_marks_of_a_task_are_due_however_it_ends(harness: Harness, store: Any) -> None:
    leases: list[Lease] = []

    async def marked(**how: Any) -> Lease:
        lease = await leased(store, **how)
        await store.add_cleanup(lease, "run", "c1", agent="team/writer")
        leases.append(lease)
        return lease

    for state in TERMINAL:
        await store.transition(await marked(), state)
    await store.complete_many([await marked()])
    lease = await marked()
    await store.transition(lease, "input-required")
    await store.cancel(lease.task_id)
    lease = await marked()
    await store.cancel(lease.task_id)
    await store.complete_many([lease])
    await marked(max_attempts=1)
    await harness.elapse(LONG)
    [failed] = await store.recover_expired()
    assert failed.state is TaskState.FAILED
    wanted = [CleanupMark(lease.task_id, "run", "c1", "team/writer") for lease in leases]
    for mark in wanted:
        assert await store.list_cleanup(mark.task_id) == [mark]
    assert Counter(await store.claim_cleanup()) == Counter(wanted)


async def test_the_same_mark_again_is_stored_once(store: Any) -> None:
    lease = await leased(store)
    for _ in range(3):
        await store.add_cleanup(lease, "blob", "b1")
    await store.add_cleanup(lease, "file", "b1")
    await store.transition(lease, "completed")
    marks = [CleanupMark(lease.task_id, kind, "b1") for kind in ("blob", "file")]
    assert await store.list_cleanup(lease.task_id) == marks


async def test_20_concurrent_marks_of_one_task_are_all_stored(store: Any) -> None:
    lease = await leased(store)
    refs = [f"b{number}" for number in range(20)]
    await asyncio.gather(*(store.add_cleanup(lease, "blob", ref) for ref in refs))
    await store.transition(lease, "completed")
    assert sorted(mark.ref for mark in await store.claim_cleanup()) == sorted(refs)


async def test_a_mark_is_stored_only_while_the_lease_holds(harness: Harness, store: Any) -> None:
    stale = await leased(store)
    lease = await next_lease(harness, store)
    with pytest.raises(LeaseLostError):
        await store.add_cleanup(stale, "blob", "b1")
    await store.add_cleanup(lease, "blob", "b2")
    await store.transition(lease, "completed")
    with pytest.raises(LeaseLostError):
        await store.add_cleanup(lease, "blob", "b3")
    assert [mark.ref for mark in await store.list_cleanup(lease.task_id)] == ["b2"]


async def test_the_marks_of_an_earlier_attempt_are_kept(harness: Harness, store: Any) -> None:
    first = await leased(store)
    await store.add_cleanup(first, "blob", "b1")
    second = await next_lease(harness, store)
    assert await store.list_cleanup(first.task_id) == []
    await store.add_cleanup(second, "blob", "b2")
    await store.transition(second, "completed")
    assert [mark.ref for mark in await store.list_cleanup(first.task_id)] == ["b1", "b2"]


async def test_a_claimed_mark_is_due_again_after_its_retry_seconds(
    harness: Harness, store: Any
) -> None:
    await _ended(store, "b1")
    [mark] = await store.claim_cleanup(retry_seconds=60)
    assert await store.claim_cleanup() == []
    await harness.elapse(61)
    assert await store.claim_cleanup() == [mark]


async def test_10_concurrent_claims_of_marks_give_each_once(store: Any) -> None:
    task_id = await _ended(store, *(f"b{number}" for number in range(20)))
    given = await asyncio.gather(*(store.claim_cleanup(limit=4) for _ in range(10)))
    # A claim passes over marks that another one takes just now.
    rest = await store.claim_cleanup()
    taken = [mark.ref for marks in [*given, rest] for mark in marks]
    assert sorted(taken) == sorted(mark.ref for mark in await store.list_cleanup(task_id))
    assert len(taken) == 20


async def test_at_most_limit_marks_are_claimed_the_longest_due_first(
    harness: Harness, store: Any
) -> None:
    for refs in (("b3",), ("b1", "b2")):
        await _ended(store, *refs)
        await harness.elapse(1)
    assert [mark.ref for mark in await store.claim_cleanup(limit=2)] == ["b3", "b1"]
    assert [mark.ref for mark in await store.claim_cleanup(limit=2)] == ["b2"]


async def test_a_limit_of_zero_claims_no_marks(store: Any) -> None:
    await _ended(store, "b1")
    assert await store.claim_cleanup(limit=0) == []
    assert len(await store.claim_cleanup()) == 1


async def test_the_due_marks_of_a_task_are_listed_whoever_claimed_them(store: Any) -> None:
    task_id = await _ended(store, "b1", "b2")
    await _ended(store, "b3")
    await store.claim_cleanup()
    assert [mark.ref for mark in await store.list_cleanup(task_id)] == ["b1", "b2"]
    assert await store.list_cleanup("nobody") == []


async def test_a_deleted_mark_is_gone(harness: Harness, store: Any) -> None:
    task_id = await _ended(store, "b1", "b2")
    first, second = await store.claim_cleanup()
    assert await store.delete_cleanup([first]) == 1
    assert await store.delete_cleanup([first]) == 0
    assert await store.delete_cleanup([]) == 0
    assert await store.list_cleanup(task_id) == [second]
    await harness.elapse(LONG)
    assert await store.claim_cleanup() == [second]
    with pytest.raises(InvalidInputError):
        await store.delete_cleanup([first, CleanupMark("another", "blob", "b1")])


async def test_files_that_are_kept_are_due_when_their_task_is_removed(store: Any) -> None:
    lease = await leased(store, session_id="c1")
    assert await store.keep_files(lease.task_id, ["b1", "b2"])
    assert await store.keep_files(lease.task_id, ["b2"])
    await store.transition(lease, "completed")
    assert await store.keep_files(lease.task_id, ["b3"])
    assert await store.list_cleanup(lease.task_id) == []
    await store.clear_context("c1")
    marks = [CleanupMark(lease.task_id, "artifact", ref) for ref in ("b1", "b2", "b3")]
    assert await store.list_cleanup(lease.task_id) == marks
    assert await store.claim_cleanup() == marks


async def test_the_files_of_a_task_that_is_gone_are_not_kept(store: Any) -> None:
    assert not await store.keep_files("nobody", ["b1"])
    lease = await leased(store, session_id="c1")
    await store.clear_context("c1")
    assert not await store.keep_files(lease.task_id, ["b1"])
    assert await store.claim_cleanup() == []


async def test_after_clear_context_the_marks_of_its_tasks_are_due_and_found_by_the_context(
    store: Any,
) -> None:
    done = await _ended(store, "b1", session_id="c1", owner="ana")
    live = await leased(store, session_id="c1", owner="ana")
    await store.add_cleanup(live, "blob", "b2")
    other = await _ended(store, "b3", session_id="c1", owner="ben")
    await store.clear_context("c1", owner="ana")
    found = await store.list_context_cleanup("c1", owner="ana")
    assert {(mark.task_id, mark.ref) for mark in found} == {(done, "b1"), (live.task_id, "b2")}
    assert await store.list_context_cleanup("c1") == []
    [mark] = await store.list_context_cleanup("c1", owner="ben")
    assert mark.task_id == other
    assert len(await store.claim_cleanup()) == 3


async def test_a_new_task_of_a_cleared_context_does_not_make_its_marks_due(store: Any) -> None:
    await _ended(store, "b1", session_id="c1")
    await store.clear_context("c1")
    lease = await leased(store, session_id="c1")
    await store.add_cleanup(lease, "blob", "b2")
    assert [mark.ref for mark in await store.list_context_cleanup("c1")] == ["b1"]
    assert [mark.ref for mark in await store.claim_cleanup()] == ["b1"]


async def test_one_tenant_never_sees_anothers_marks(harness: Harness, store: Any) -> None:
    task_id = await _ended(store, "b1", session_id="c1")
    other = harness.store("tasks", tenant="other")
    assert await other.claim_cleanup() == []
    assert await other.list_cleanup(task_id) == []
    assert await other.list_context_cleanup("c1") == []
    assert not await other.keep_files(task_id, ["b2"])
    assert await other.delete_cleanup([CleanupMark(task_id, "blob", "b1")]) == 0
    assert len(await store.claim_cleanup()) == 1


async def test_an_unknown_kind_of_mark_is_refused(store: Any) -> None:
    lease = await leased(store)
    with pytest.raises(InvalidInputError) as caught:
        await store.add_cleanup(lease, "house", "b1")
    assert caught.value.field == "kind"
    await store.transition(lease, "completed")
    assert await store.claim_cleanup() == []


async def test_marks_are_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    await _ended(store, "b1")
    await submitted(store)
    lease = (await claimed(store)).lease
    await store.add_cleanup(lease, "blob", "b2")
    await harness.reopen()
    again = harness.store("tasks")
    await again.transition(lease, "completed")
    assert [mark.ref for mark in await again.claim_cleanup()] == ["b1", "b2"]
