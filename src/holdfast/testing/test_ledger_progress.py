"""The promises of ``ProgressLedger``: messages and steps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import found, leased, next_lease, texts
from holdfast.values.content import (
    ChatMessage,
    TextBlock,
)
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.tasks.events import StepKey

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

FETCH = StepKey("fetch")
HELLO = StepKey("hello", kind="say")


async def test_messages_of_a_worker_are_in_the_history_in_order(store: Any) -> None:
    lease = await leased(store)
    for text in ("one", "two", "two"):
        stored = await store.append_message(lease, ChatMessage.assistant(text))
        assert stored.text == text
    task = await found(store, lease.task_id)
    assert texts(task.messages) == ["Tides of Brest?", "one", "two", "two"]
    places = [message.seq or 0 for message in task.messages]
    assert places == sorted(set(places))


async def test_the_same_message_id_again_is_appended_once(store: Any) -> None:
    lease = await leased(store)
    message = ChatMessage.assistant("one", metadata={"a": 1, "b": 2})
    first = await store.append_message(lease, message)
    again = replace(message, metadata={"b": 2, "a": 1})
    assert (await store.append_message(lease, again)).seq == first.seq
    done = await store.transition(lease, "input-required", message=message)
    assert done.status_message == message
    assert len((await found(store, lease.task_id)).messages) == 2


async def test_the_same_message_id_with_another_body_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    lease = await leased(store)
    await store.append_message(lease, ChatMessage.assistant("one", id="m1"))
    before = await found(store, lease.task_id)
    with pytest.raises(ConflictError):
        await store.append_message(lease, ChatMessage.assistant("two", id="m1"))
    with pytest.raises(ConflictError):
        await store.append_message(lease, ChatMessage.assistant("two", id="m1"), step=HELLO)
    with pytest.raises(ConflictError):
        await store.transition(lease, "completed", message=ChatMessage.user("one", id="m1"))
    assert await found(store, lease.task_id) == before
    assert await store.steps(lease.task_id) == []


async def test_a_message_under_a_step_key_is_appended_once_the_first_stored_wins(
    harness: Harness, store: Any
) -> None:
    first = await leased(store)
    said = await store.append_message(first, ChatMessage.assistant("hello"), step=HELLO)
    second = await next_lease(harness, store)
    again = await store.append_message(second, ChatMessage.assistant("hi"), step=HELLO)
    assert again == said
    await store.append_message(
        second, ChatMessage.assistant("hi"), step=replace(HELLO, occurrence=2)
    )
    task = await found(store, first.task_id)
    assert texts(task.messages) == ["Tides of Brest?", "hello", "hi"]
    steps = await store.steps(first.task_id)
    assert [step.result["message_id"] for step in steps] == [one.id for one in task.messages[1:]]


async def test_a_steps_result_comes_back_exactly_as_it_went_in(store: Any) -> None:
    lease = await leased(store)
    results: list[Any] = [None, True, 0, -0.0, 1e16, "a\x00b", [], {}]
    results.append({"b": 1, "a": [{"z": 1, "y": None}]})
    for at, result in enumerate(results, 1):
        key = StepKey("fetch", at)
        stored = await store.record_step(lease, key, result, digest="d1")
        assert repr(stored.result) == repr(result)
        assert (stored.key, stored.digest, stored.fence) == (key, "d1", lease.fence)
        assert (await store.steps(lease.task_id))[-1] == stored


async def test_the_first_stored_result_of_a_step_wins(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    await store.record_step(lease, FETCH, "first")
    assert (await store.record_step(lease, FETCH, "second")).result == "first"
    later = await next_lease(harness, store)
    assert (await store.record_step(later, FETCH, "third")).result == "first"
    [step] = await store.steps(lease.task_id)
    assert (step.result, step.fence) == ("first", lease.fence)


async def test_the_same_step_with_other_arguments_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    lease = await leased(store)
    await store.record_step(lease, FETCH, 1, digest="d1")
    before = await found(store, lease.task_id)
    with pytest.raises(ConflictError):
        await store.record_step(lease, FETCH, 1, digest="d2")
    assert await found(store, lease.task_id) == before


async def test_a_step_without_a_digest_is_not_compared(store: Any) -> None:
    lease = await leased(store)
    await store.record_step(lease, FETCH, 1, digest="d1")
    assert (await store.record_step(lease, FETCH, 2)).result == 1
    other = StepKey("other")
    await store.record_step(lease, other, 1)
    assert (await store.record_step(lease, other, 2, digest="d2")).result == 1


async def test_kind_name_and_occurrence_keep_steps_apart(store: Any) -> None:
    lease = await leased(store)
    keys = [FETCH, StepKey("fetch", 2), StepKey("fetch", kind="ask"), StepKey("Fetch")]
    for at, key in enumerate(keys):
        assert (await store.record_step(lease, key, at)).result == at
    assert [step.result for step in await store.steps(lease.task_id)] == [0, 1, 2, 3]


async def test_steps_come_in_the_order_they_were_stored(store: Any) -> None:
    lease = await leased(store)
    for name in ("c", "a", "b"):
        await store.record_step(lease, StepKey(name), None)
    assert [step.key.name for step in await store.steps(lease.task_id)] == ["c", "a", "b"]


async def test_an_unknown_task_has_no_steps(store: Any) -> None:
    assert await store.steps("no such task") == []


async def test_a_step_stored_again_is_no_progress(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    await store.record_step(lease, FETCH, 1)
    later = await next_lease(harness, store)
    await store.record_step(later, FETCH, 1)
    assert (await found(store, lease.task_id)).attempts == 1


async def test_a_stored_step_sets_the_attempts_back(store: Any) -> None:
    lease = await leased(store)
    await store.append_message(lease, ChatMessage.assistant("no step"))
    assert (await found(store, lease.task_id)).attempts == 1
    await store.record_step(lease, FETCH, 1)
    assert (await found(store, lease.task_id)).attempts == 0


async def test_a_result_that_is_not_json_is_refused_by_its_path_and_nothing_is_written(
    store: Any,
) -> None:
    lease = await leased(store)
    before = await found(store, lease.task_id)
    with pytest.raises(InvalidInputError) as caught:
        await store.record_step(lease, FETCH, {"pages": [1, {1, 2}]})
    assert caught.value.field == "result.pages[1]"
    assert await found(store, lease.task_id) == before


async def test_20_concurrent_results_of_one_step_store_one(store: Any) -> None:
    lease = await leased(store)
    stored = await asyncio.gather(*(store.record_step(lease, FETCH, at) for at in range(20)))
    assert len({step.result for step in stored}) == 1
    await check_invariants(store, submitted=1)


async def test_50_concurrent_messages_are_all_in_the_history(store: Any) -> None:
    lease = await leased(store)
    messages = [ChatMessage.assistant(f"message {at}") for at in range(50)]
    await asyncio.gather(*(store.append_message(lease, message) for message in messages))
    task = await found(store, lease.task_id)
    assert sorted(texts(task.messages[1:])) == sorted(texts(messages))
    await check_invariants(store, submitted=1)


async def test_parts_and_results_that_a_caller_passed_in_may_be_changed_afterwards(
    store: Any,
) -> None:
    lease = await leased(store)
    parts, metadata, result = [TextBlock("x")], {"a": [1]}, {"a": [1]}
    await store.append_artifact(lease, "a1", parts, metadata=metadata)
    await store.record_step(lease, FETCH, result)
    parts.clear()
    metadata["a"].append(2)
    result["a"].append(2)
    [artifact], [step] = await store.artifacts(lease.task_id), await store.steps(lease.task_id)
    assert (artifact.parts, artifact.metadata) == ([TextBlock("x")], {"a": [1]})
    assert step.result == {"a": [1]}


async def test_a_step_says_when_it_was_started(harness: Harness, store: Any) -> None:
    await harness.hold_clock()
    lease = await leased(store)
    timed = await store.record_step(lease, FETCH, 1, seconds=2.5)
    assert timed.stored_at - timed.started_at == timedelta(seconds=2.5)
    untimed = await store.record_step(lease, StepKey("other"), 1)
    assert untimed.started_at is None
    # The first stored wins, also in this.
    assert (await store.record_step(lease, FETCH, 1, seconds=9.0)).started_at == timed.started_at
    assert await store.steps(lease.task_id) == [timed, untimed]
    events = await store.events(lease.task_id)
    assert [one.body.started_at for one in events[-2:]] == [timed.started_at, None]
    for wrong in (0, -1.0, float("nan"), 1e12, "2", True):
        with pytest.raises(InvalidInputError, match="seconds"):
            await store.record_step(lease, StepKey("third"), 1, seconds=wrong)


async def test_a_failed_try_of_a_step_is_in_the_timeline_and_is_no_progress(
    harness: Harness, store: Any
) -> None:
    await leased(store)
    lease = await next_lease(harness, store)
    before = await found(store, lease.task_id)
    assert before.attempts == 2
    failed = StepKey("fetch", kind="try")
    await store.record_step(lease, failed, {"error": "no route"})
    task = await found(store, lease.task_id)
    assert (task.attempts, task.version) == (2, before.version + 1)
    [*_, last] = await store.events(lease.task_id)
    assert (last.kind, last.body.key, last.body.result) == ("step", failed, {"error": "no route"})
    assert await store.replay(task.id, task.version) == replace(task, lease_expires_at=None)
    await check_invariants(store)
