"""The promises of ``InboxLedger``: messages to running tasks."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import LONG, adopted, claimed, found, leased, next_lease
from holdfast.values.errors import (
    ConflictError,
    InvalidInputError,
    LeaseLostError,
    NotFoundError,
)
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


def _key(number: int = 1) -> StepKey:
    return StepKey("news", number, "receive")


async def _waits(store: Any, lease: Lease, topic: str = "messages", **how: Any) -> None:
    await store.transition(lease, "submitted", progress=True, topic=topic, **how)


async def _received(store: Any, lease: Lease, number: int = 1, **how: Any) -> Any:
    step = await store.receive(lease, _key(number), **how)
    return None if step is None else step.result["message"]


async def test_a_sent_message_is_received_exactly_as_it_went_in(store: Any) -> None:
    lease = await leased(store)
    messages: list[Any] = [None, 0, -0.0, "a\x00b", [], {"b": 1, "a": [{"z": None}]}]
    for number, message in enumerate(messages, 1):
        key = await store.send(lease.task_id, message)
        step = await store.receive(lease, _key(number))
        assert repr(step.result["message"]) == repr(message)
        assert (step.key, step.fence) == (_key(number), lease.fence)
        assert step.result["id"] == key
        assert (await store.steps(lease.task_id))[-1] == step
    await check_invariants(store)


async def test_messages_of_a_topic_are_received_in_the_order_they_were_sent(store: Any) -> None:
    lease = await leased(store)
    for number in range(5):
        await store.send(lease.task_id, number, message_id=f"m{9 - number}")
    assert [await _received(store, lease, at) for at in range(1, 7)] == [0, 1, 2, 3, 4, None]


async def test_topics_are_received_apart_from_each_other(store: Any) -> None:
    lease = await leased(store)
    await store.send(lease.task_id, "a", topic="one")
    await store.send(lease.task_id, "b", topic="two")
    assert await _received(store, lease, 1) is None
    assert await _received(store, lease, 2, topic="two") == "b"
    assert await _received(store, lease, 3, topic="one") == "a"


async def test_a_message_is_received_once(store: Any) -> None:
    lease = await leased(store)
    await store.send(lease.task_id, "only")
    got = await asyncio.gather(*(_received(store, lease, at) for at in range(1, 11)))
    assert sorted(map(str, got)) == ["None"] * 9 + ["only"]
    assert len(await store.steps(lease.task_id)) == 1


async def test_a_message_that_was_received_under_a_step_key_comes_again_under_that_key(
    harness: Harness, store: Any
) -> None:
    first = await leased(store)
    await store.send(first.task_id, "one")
    await store.send(first.task_id, "two")
    before = await store.receive(first, _key())
    assert before.result["message"] == "one"
    # The worker dies after it received, and before it could use it.
    second = await next_lease(harness, store)
    assert await store.receive(second, _key()) == before
    assert await store.receive(second, _key(), last=True) == before
    assert await _received(store, second, 2) == "two"
    assert len(await store.steps(first.task_id)) == 2


async def test_a_stale_worker_receives_nothing(harness: Harness, store: Any) -> None:
    stale = await leased(store)
    await store.send(stale.task_id, "one")
    lease = await next_lease(harness, store)
    with pytest.raises(LeaseLostError):
        await store.receive(stale, _key())
    with pytest.raises(LeaseLostError):
        await _waits(store, stale)
    assert await _received(store, lease) == "one"


async def test_a_task_without_a_message_receives_none_and_nothing_is_written(store: Any) -> None:
    lease = await leased(store)
    before = await found(store, lease.task_id)
    assert await store.receive(lease, _key()) is None
    assert await found(store, lease.task_id) == before


async def test_the_last_look_for_a_message_stores_that_there_was_none(store: Any) -> None:
    lease = await leased(store)
    step = await store.receive(lease, _key(), last=True)
    assert step.result == {"id": None, "message": None}
    await store.send(lease.task_id, "late")
    assert await store.receive(lease, _key()) == step
    assert await _received(store, lease, 2, last=True) == "late"


async def test_a_task_that_waits_for_a_topic_is_due_when_a_message_of_it_is_sent(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _waits(store, lease, "go")
    await harness.elapse(LONG)
    await store.send(lease.task_id, 1, topic="other")
    assert await store.claim("w2") == []
    await store.send(lease.task_id, 2, topic="go")
    again = await claimed(store)
    assert (again.task.id, again.task.attempts) == (lease.task_id, 1)
    assert await _received(store, again.lease, topic="go") == 2
    await check_invariants(store)


async def test_a_message_that_is_there_before_the_task_waits_makes_it_due_at_once(
    store: Any,
) -> None:
    lease = await leased(store)
    await store.send(lease.task_id, 1)
    await _waits(store, lease, run_after=timedelta(days=1))
    assert (await claimed(store)).task.id == lease.task_id


async def test_a_task_that_waits_for_a_topic_is_due_at_its_run_after(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _waits(store, lease, run_after=timedelta(seconds=60))
    assert await store.claim("w2") == []
    await harness.elapse(LONG)
    assert (await claimed(store)).task.id == lease.task_id


async def test_a_message_that_races_the_wait_for_it_is_not_lost(store: Any) -> None:
    for _ in range(20):
        lease = await leased(store)
        await asyncio.gather(_waits(store, lease), store.send(lease.task_id, "go"))
        again = await claimed(store)
        assert await _received(store, again.lease) == "go"
        await store.transition(again.lease, "completed")
    await check_invariants(store)


async def test_a_task_that_was_paused_while_its_message_came_goes_on_when_it_is_resumed(
    store: Any,
) -> None:
    lease = await leased(store)
    await _waits(store, lease, run_after=timedelta(days=1))
    await store.pause(lease.task_id)
    await store.send(lease.task_id, "go")
    assert await store.claim("w2") == []
    await store.resume(lease.task_id)
    again = await claimed(store)
    assert await _received(store, again.lease) == "go"
    await check_invariants(store)


async def test_the_same_message_id_twice_is_sent_once(store: Any) -> None:
    lease = await leased(store)
    sends = [store.send(lease.task_id, {"a": 1, "b": 2}, message_id="m1") for _ in range(5)]
    assert set(await asyncio.gather(*sends)) == {"m1"}
    assert await _received(store, lease, 1) == {"a": 1, "b": 2}
    # Also after it was received, and after the task has ended.
    await store.send(lease.task_id, {"b": 2, "a": 1}, message_id="m1")
    assert await _received(store, lease, 2) is None
    await store.transition(lease, "completed")
    await store.send(lease.task_id, {"b": 2, "a": 1}, message_id="m1")


async def test_the_same_message_id_with_another_message_or_topic_is_a_conflict(store: Any) -> None:
    lease = await leased(store)
    await store.send(lease.task_id, 1, message_id="m1")
    with pytest.raises(ConflictError, match="another body"):
        await store.send(lease.task_id, 2, message_id="m1")
    with pytest.raises(ConflictError, match="another body"):
        await store.send(lease.task_id, 1, message_id="m1", topic="other")
    assert [await _received(store, lease, at) for at in (1, 2)] == [1, None]


async def test_a_message_to_an_ended_task_is_refused(store: Any) -> None:
    lease = await leased(store)
    await store.transition(lease, "completed")
    with pytest.raises(ConflictError, match="has ended"):
        await store.send(lease.task_id, 1)
    other = await adopted(store)
    with pytest.raises(ConflictError, match="run by somebody else"):
        await store.send(other.id, 1)


async def test_a_message_to_an_unknown_task_or_another_owners_is_not_found(store: Any) -> None:
    lease = await leased(store, owner="ana")
    for key, owner in (("nothing", None), (lease.task_id, "ben"), (lease.task_id, "")):
        with pytest.raises(NotFoundError):
            await store.send(key, 1, owner=owner)
    assert await _received(store, lease) is None
    await store.send(lease.task_id, 1, owner="ana")
    assert await _received(store, lease) == 1


async def test_one_tenant_never_sends_to_anothers_tasks(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    with pytest.raises(NotFoundError):
        await harness.store(CONTRACT, tenant="other").send(lease.task_id, 1)
    assert await _received(store, lease) is None


async def test_an_inbox_takes_1000_messages_and_refuses_the_next(store: Any) -> None:
    lease = await leased(store)
    for start in range(0, 1000, 50):
        await asyncio.gather(*(store.send(lease.task_id, start + at) for at in range(50)))
    with pytest.raises(ConflictError, match="has 1000 messages"):
        await store.send(lease.task_id, "more", topic="other")
    assert await _received(store, lease) is not None
    await store.send(lease.task_id, "more", topic="other")


async def test_a_message_that_is_too_large_or_not_json_is_refused_and_nothing_is_sent(
    store: Any,
) -> None:
    lease = await leased(store)
    for wrong in ("x" * 262_143, {1, 2}, {"a": b""}, float("nan")):
        with pytest.raises(InvalidInputError, match="message"):
            await store.send(lease.task_id, wrong)
    for how in ({"topic": ""}, {"topic": "a\n"}, {"topic": "x" * 513}, {"message_id": "\x00"}):
        with pytest.raises(InvalidInputError):
            await store.send(lease.task_id, 1, **how)
    assert await _received(store, lease) is None
    await store.send(lease.task_id, "x" * 262_142)


async def test_a_topic_is_waited_for_only_with_submitted(store: Any) -> None:
    lease = await leased(store)
    for state in ("completed", "input-required"):
        with pytest.raises(InvalidInputError, match="topic"):
            await store.transition(lease, state, topic="go")
    with pytest.raises(InvalidInputError, match="topic"):
        await store.transition(lease, "submitted", topic="")


async def test_messages_are_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    lease = await leased(store, session_id="c1")
    await store.send(lease.task_id, "kept")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await _received(again, lease) == "kept"
    await again.clear_context("c1")
    with pytest.raises(NotFoundError):
        await again.send(lease.task_id, "gone")
