"""The promises of ``QueueLedger``: limits that all workers keep together."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import LONG, submitted
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.limits import MAX_LIMIT, Limit
from holdfast.values.tasks.records import ClaimedTask

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _many(store: Any, count: int, **how: Any) -> list[str]:
    return [(await submitted(store, **how)).id for _ in range(count)]


async def _claim(store: Any, *limits: Limit, **how: Any) -> list[ClaimedTask]:
    found: list[ClaimedTask] = await store.claim("w1", **{"limit": 100, "limits": limits, **how})
    return found


async def test_no_more_tasks_of_an_agent_are_at_work_than_its_concurrency(store: Any) -> None:
    two = Limit("writer", concurrency=2)
    for serial in (True, False):
        tasks = await _many(store, 3)
        first = await _claim(store, two, limit=1, serial_contexts=serial)
        second = await _claim(store, two, serial_contexts=serial)
        assert [one.task.id for one in first + second] == tasks[:2]
        assert await _claim(store, two, serial_contexts=serial) == []
        await store.transition(first[0].lease, "completed")
        third = await _claim(store, two, serial_contexts=serial)
        assert [one.task.id for one in third] == tasks[2:]
        await store.complete_many([one.lease for one in second + third])


async def test_no_more_tasks_of_a_tenant_are_at_work_than_its_concurrency(store: Any) -> None:
    three = Limit(concurrency=3)
    await _many(store, 2)
    await _many(store, 4, agent="reader")
    taken = await _claim(store, three)
    assert [str(one.task.agent) for one in taken] == ["writer", "writer", "reader"]
    assert await _claim(store, three, agents=["reader"]) == []


async def test_no_more_tasks_of_a_key_are_at_work_than_its_concurrency(store: Any) -> None:
    one_each = Limit("writer", concurrency=1, per_key=True)
    first, *_ = await _many(store, 3, key="a")
    second, *_ = await _many(store, 2, key="b")
    taken = await _claim(store, one_each)
    assert [one.task.id for one in taken] == [first, second]
    assert await _claim(store, one_each) == []
    await store.transition(taken[1].lease, "failed")
    assert [one.task.key for one in await _claim(store, one_each)] == ["b"]


async def test_tasks_without_a_key_have_no_limit_per_key(store: Any) -> None:
    await _many(store, 3)
    assert len(await _claim(store, Limit("writer", concurrency=1, per_key=True))) == 3


async def test_tasks_of_a_full_key_do_not_hold_up_others(store: Any) -> None:
    one_each = Limit("writer", concurrency=1, per_key=True)
    await _many(store, 20, key="a")
    other = await submitted(store, key="b")
    taken = await _claim(store, one_each, limit=2)
    assert [one.task.key for one in taken] == ["a", "b"]
    assert taken[1].task.id == other.id
    waiting = await submitted(store)
    assert [one.task.id for one in await _claim(store, one_each, limit=1)] == [waiting.id]


async def test_tasks_of_a_full_agent_do_not_hold_up_others(store: Any) -> None:
    one = Limit("writer", concurrency=1)
    await submitted(store)
    assert len(await _claim(store, one)) == 1
    # The agent is full, and its tasks come first: in the queue, and in the context.
    await _many(store, 5)
    await _many(store, 5, session_id="c1")
    reader = await submitted(store, agent="reader", session_id="c1")
    assert [held.task.id for held in await _claim(store, one, limit=1)] == [reader.id]


async def test_10_concurrent_claims_keep_a_concurrency_together(store: Any) -> None:
    await _many(store, 30)
    four = Limit("writer", concurrency=4)
    for _ in range(3):
        batches = await asyncio.gather(*(_claim(store, four, limit=3) for _ in range(10)))
        taken = [one for batch in batches for one in batch]
        assert len(taken) == 4
        assert (await store.list(states=["working"], limit=0, count=True)).total == 4
        await store.complete_many([one.lease for one in taken])
    await check_invariants(store, submitted=30)


async def test_whatever_ends_the_work_on_a_task_gives_its_place_back(store: Any) -> None:
    one = Limit("writer", concurrency=1)
    await _many(store, 8)
    for end in ("completed", "failed", "rejected", "input-required", "submitted", "paused"):
        [held] = await _claim(store, one)
        assert await _claim(store, one) == []
        later = timedelta(hours=1) if end == "submitted" else None
        await store.transition(held.lease, end, run_after=later)
    [held] = await _claim(store, one)
    await store.cancel(held.task.id)
    assert await _claim(store, one) == []
    await store.transition(held.lease, "canceled")
    [held] = await _claim(store, one)
    await store.release(held.lease)
    assert len(await _claim(store, one)) == 1


async def test_the_place_of_a_dead_worker_comes_back_with_its_lease(
    harness: Harness, store: Any
) -> None:
    one = Limit("writer", concurrency=1)
    first, second = await _many(store, 2)
    [dead] = await _claim(store, one, lease_seconds=30)
    await harness.elapse(LONG)
    # Until it is taken back, its worker may still be at work.
    assert await _claim(store, one) == []
    await store.recover_expired()
    [again] = await _claim(store, one)
    assert (dead.task.id, again.task.id, again.lease.fence) == (first, first, 2)
    await store.transition(again.lease, "completed")
    assert [held.task.id for held in await _claim(store, one)] == [second]


async def test_no_more_tasks_begin_in_any_period_than_the_rate(
    harness: Harness, store: Any
) -> None:
    await harness.hold_clock()
    rate = Limit("writer", rate="3/min")
    await _many(store, 9)
    assert len(await _claim(store, rate, limit=2)) == 2
    await harness.elapse(30)
    assert len(await _claim(store, rate)) == 1
    await harness.elapse(29)
    assert await _claim(store, rate) == []
    await harness.elapse(2)
    assert len(await _claim(store, rate)) == 2
    await harness.elapse(28)
    assert await _claim(store, rate) == []
    await harness.elapse(2)
    assert len(await _claim(store, rate)) == 1


async def test_a_rate_counts_tasks_that_have_ended(harness: Harness, store: Any) -> None:
    await harness.hold_clock()
    rate = Limit(rate="1/10s")
    await _many(store, 2)
    [held] = await _claim(store, rate)
    await store.transition(held.lease, "completed")
    assert await _claim(store, rate) == []
    await harness.elapse(11)
    assert len(await _claim(store, rate)) == 1


async def test_a_rate_holds_for_each_key_by_itself(store: Any) -> None:
    rates = Limit("writer", rate="2/h", per_key=True), Limit("writer", rate="3/h")
    await _many(store, 3, key="a")
    await _many(store, 3, key="b")
    assert [one.task.key for one in await _claim(store, *rates)] == ["a", "a", "b"]
    assert await _claim(store, *rates) == []


async def test_10_concurrent_claims_keep_a_rate_together(store: Any) -> None:
    await _many(store, 20)
    rate = Limit("writer", rate="7/h")
    batches = await asyncio.gather(*(_claim(store, rate, limit=2) for _ in range(10)))
    assert sum(len(batch) for batch in batches) == 7


async def test_limits_of_one_tenant_do_not_count_the_tasks_of_another(
    harness: Harness, store: Any
) -> None:
    other = harness.store(CONTRACT, tenant="other")
    limits = Limit(concurrency=1), Limit("writer", rate="1/h")
    for one in (store, other):
        await _many(one, 2)
        assert len(await _claim(one, *limits)) == 1
        assert await _claim(one, *limits) == []


async def test_a_limit_that_is_no_limit_is_refused(store: Any) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("concurrency", {}),
        ("concurrency", {"concurrency": 0}),
        ("concurrency", {"concurrency": MAX_LIMIT + 1}),
        ("concurrency", {"concurrency": "2"}),
        ("per_key", {"concurrency": 2, "per_key": True}),
        *(
            ("rate", {"rate": rate})
            for rate in ("", "10", "10/", "0/min", "1/0s", "1/year", "-1/s", "1/999999d", 10)
        ),
    ]
    for field, bad in refused:
        with pytest.raises(InvalidInputError, match=field):
            Limit(**bad)
    for wrong in ([{"concurrency": 1}], "limits", 5):
        with pytest.raises(InvalidInputError, match="limits"):
            await store.claim("w1", limits=wrong)
