"""The promises of ``QueueLedger``: many tasks in one call, and priorities."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import found, submitted
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.tasks.new_task import (
    MAX_BYTES_PER_CALL,
    MAX_TASKS_PER_CALL,
    NewTask,
)

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


def _new(text: str = "Tides of Brest?", **how: Any) -> NewTask:
    return NewTask(how.pop("agent", "writer"), ChatMessage.user(text), **how)


async def _claims(store: Any, **how: Any) -> list[str]:
    return [one.task.id for one in await store.claim("w1", **{"limit": 100, **how})]


async def _count(store: Any) -> int:
    total: int = (await store.list(owner=None, limit=0, count=True)).total
    return total


async def test_submit_many_stores_all_tasks_and_returns_them_in_order(store: Any) -> None:
    given = [
        _new("one", session_id="c1", metadata={"a": [1]}, priority=3, key="k"),
        _new("two", agent="team/reader", submit_key="s1", max_attempts=2),
        _new("three", session_id="c1", run_after=timedelta(hours=1)),
    ]
    made = await store.submit_many(given, owner="ana")
    assert len({task.id for task in made}) == 3
    stored = [await found(store, task) for task in made]
    assert [task.messages[0].text for task in stored] == ["one", "two", "three"]
    assert [str(task.agent) for task in made] == ["writer", "team/reader", "writer"]
    assert [task.owner for task in made] == ["ana"] * 3
    assert (made[0].metadata, made[0].priority, made[0].key) == ({"a": [1]}, 3, "k")
    assert (made[1].submit_key, made[1].max_attempts) == ("s1", 2)
    assert made[0].session_id == made[2].session_id == "c1" != made[1].session_id
    assert made[2].run_after == made[2].created_at + timedelta(hours=1)
    single = await submitted(store, "one", owner="ana", session_id="c1")
    assert [event.kind for event in await store.events(made[0].id, owner=None)] == [
        event.kind for event in await store.events(single.id, owner=None)
    ]
    await check_invariants(store, submitted=4)


async def test_tasks_of_one_submit_many_run_in_the_order_given(store: Any) -> None:
    keys = ["z", "b", None, "a"]
    made = await store.submit_many([_new(submit_key=key) for key in keys])
    assert await _claims(store) == [task.id for task in made]


async def test_submit_many_with_a_bad_task_names_its_index_and_writes_nothing(store: Any) -> None:
    for bad, field in [
        (_new(agent=""), "tasks[1]"),
        (_new(metadata={"a": object()}), "tasks[1].metadata"),
        (_new(session_id="holdfast.x"), "tasks[1].session_id"),
        (_new(max_attempts=0), "tasks[1].max_attempts"),
        (_new(priority=10), "tasks[1].priority"),
        (_new(key="a\nb"), "tasks[1].key"),
        ("no task", "tasks[1]"),
    ]:
        with pytest.raises(InvalidInputError) as refused:
            await store.submit_many([_new(), bad, _new()])
        assert refused.value.field.startswith(field)
    with pytest.raises(InvalidInputError, match="tasks"):
        await store.submit_many("tasks")
    assert await _count(store) == 0


async def test_submit_many_with_a_used_submit_key_finds_its_task(store: Any) -> None:
    known = await submitted(store, "one", submit_key="k1", owner="ana")
    made = await store.submit_many(
        [_new("two"), _new("one", submit_key="k1"), _new("three", submit_key="k3")], owner="ana"
    )
    assert made[1].id == known.id
    again = await store.submit_many([_new("three", submit_key="k3")], owner="ana")
    assert again[0].id == made[2].id
    theirs = await store.submit_many([_new("one", submit_key="k1")], owner="eve")
    assert theirs[0].id != known.id
    assert await _count(store) == 4


async def test_submit_many_with_one_submit_key_twice_makes_one_task(store: Any) -> None:
    made = await store.submit_many([_new(submit_key="k1"), _new(), _new(submit_key="k1")])
    assert made[0].id == made[2].id != made[1].id
    assert await _count(store) == 2
    assert len((await found(store, made[0])).messages) == 1


async def test_submit_many_with_a_submit_key_and_other_content_names_its_index_and_writes_nothing(
    store: Any,
) -> None:
    await submitted(store, "one", submit_key="k1")
    with pytest.raises(ConflictError, match=r"tasks\[2\]") as known:
        await store.submit_many([_new(), _new(session_id="c9"), _new("other", submit_key="k1")])
    assert known.value.key == "k1"
    with pytest.raises(ConflictError, match=r"tasks\[1\]"):
        await store.submit_many([_new("a", submit_key="k2"), _new("b", submit_key="k2")])
    assert await _count(store) == 1
    assert await store.get_context("c9") is None


async def test_submit_many_is_bounded_in_tasks_and_bytes(store: Any) -> None:
    with pytest.raises(InvalidInputError, match=str(MAX_TASKS_PER_CALL)):
        await store.submit_many([_new()] * (MAX_TASKS_PER_CALL + 1))
    large = _new("x" * (MAX_BYTES_PER_CALL // 2))
    with pytest.raises(InvalidInputError, match=r"tasks\[1\]"):
        await store.submit_many([large, large])
    assert await _count(store) == 0
    made = await store.submit_many([_new(str(at)) for at in range(MAX_TASKS_PER_CALL)])
    assert len({task.id for task in made}) == MAX_TASKS_PER_CALL == await _count(store)


async def test_submit_many_of_nothing_does_nothing(store: Any) -> None:
    assert await store.submit_many([]) == []


async def test_concurrent_submit_many_with_the_same_keys_in_another_order_make_each_task_once(
    store: Any,
) -> None:
    tasks = [_new(str(at), submit_key=f"k{at}", session_id=f"c{at % 5}") for at in range(30)]
    calls = [tasks if at % 2 else tasks[::-1] for at in range(8)]
    made = await asyncio.gather(*(store.submit_many(call) for call in calls))
    forward = [task.id for task in made[1]]
    assert all(
        [task.id for task in batch] == (forward if at % 2 else forward[::-1])
        for at, batch in enumerate(made)
    )
    await check_invariants(store, submitted=30)


async def test_a_task_of_a_higher_priority_is_claimed_first(store: Any) -> None:
    for serial in (True, False):
        low = [await submitted(store) for _ in range(2)]
        five, nine, one = [await submitted(store, priority=at) for at in (5, 9, 1)]
        order = [nine.id, five.id, one.id, *(task.id for task in low)]
        assert await _claims(store, limit=2, serial_contexts=serial) == order[:2]
        assert await _claims(store, serial_contexts=serial) == order[2:]


async def test_tasks_of_one_priority_are_claimed_in_the_order_they_became_due(store: Any) -> None:
    tasks = [await submitted(store, priority=4) for _ in range(5)]
    assert await _claims(store, limit=3) == [task.id for task in tasks[:3]]
    assert await _claims(store) == [task.id for task in tasks[3:]]


async def test_a_priority_waits_until_its_task_is_due(harness: Harness, store: Any) -> None:
    later = await submitted(store, priority=9, run_after=timedelta(seconds=60))
    other = await submitted(store, priority=9, agent="reader")
    now = await submitted(store)
    assert await _claims(store, agents=["writer"]) == [now.id]
    await harness.elapse(61)
    await submitted(store)
    assert (await _claims(store, limit=1, agents=["writer"])) == [later.id]
    assert (await _claims(store, limit=1)) == [other.id]


async def test_a_priority_is_part_of_what_a_submit_key_names(store: Any) -> None:
    task = await submitted(store, submit_key="k1", priority=2, key="a")
    assert (await submitted(store, submit_key="k1", priority=2, key="a")).id == task.id
    for priority, key in [(3, "a"), (2, "b"), (0, "")]:
        with pytest.raises(ConflictError):
            await submitted(store, submit_key="k1", priority=priority, key=key or None)


async def test_a_priority_outside_0_to_9_is_refused(store: Any) -> None:
    for bad in (-1, 10, 1 << 70, 2.5, "5", True, None):
        with pytest.raises(InvalidInputError, match="priority"):
            await submitted(store, priority=bad)
    assert await _count(store) == 0


async def test_of_one_context_the_task_of_a_higher_priority_is_claimed_first_and_one_at_a_time(
    store: Any,
) -> None:
    low = await submitted(store, session_id="c1")
    high = await submitted(store, session_id="c1", priority=7)
    [first] = await store.claim("w1", limit=10)
    assert first.task.id == high.id
    assert await _claims(store) == []
    await store.transition(first.lease, "completed")
    assert await _claims(store) == [low.id]


async def test_a_retry_keeps_priority_and_key(store: Any) -> None:
    task = await submitted(store, priority=6, key="customer-7")
    await store.cancel(task.id)
    again = await store.retry(task.id)
    assert (again.priority, again.key) == (6, "customer-7")
    replayed = await store.replay(again.id, again.version)
    assert (replayed.priority, replayed.key) == (6, "customer-7")


async def test_a_task_made_of_another_keeps_its_priority_and_key(store: Any) -> None:
    task = await store.submit("writer", ChatMessage.user("hello"), priority=7, key="k1")
    [claimed] = await store.claim("w1", agents=["writer"])
    await store.transition(claimed.lease, "failed", note="no tide")
    await store.resume_failed(task.id)
    await store.fork(task.id, 2)
    await store.retry_many(states=["failed"], agent="writer")
    made = (await store.list(agent="writer")).tasks
    assert [(one.priority, one.key) for one in made] == [(7, "k1")] * 4
