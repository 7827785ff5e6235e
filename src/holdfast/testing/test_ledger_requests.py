"""The promises of ``ClientLedger``: answering, stopping, holding and retrying tasks."""

from __future__ import annotations

import asyncio
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
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, IllegalTransitionError
from holdfast.values.lifecycle import TERMINAL, WAITING, TaskState

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_answer_takes_a_waiting_task_back_to_the_queue(store: Any) -> None:
    for state in sorted(WAITING):
        task = await brought_to(store, state)
        assert await store.claim("w2") == []
        answered = await store.respond(task.id, ChatMessage.user("chapter 2"))
        assert answered.state is TaskState.SUBMITTED
        again = await claimed(store)
        assert again.task.id == task.id
        await store.transition(again.lease, "completed")


async def test_an_answer_is_in_the_history(store: Any) -> None:
    lease = await leased(store)
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    await store.respond(lease.task_id, ChatMessage.user("chapter 2"))
    task = await found(store, lease.task_id)
    assert texts(task.messages) == ["Tides of Brest?", "which?", "chapter 2"]


async def test_an_answer_sets_the_attempts_back(store: Any) -> None:
    task = await brought_to(store, TaskState.INPUT_REQUIRED)
    assert task.attempts == 1
    assert (await store.respond(task.id, ChatMessage.user("this"))).attempts == 0


async def test_the_same_answer_twice_is_taken_once(store: Any) -> None:
    task = await brought_to(store, TaskState.INPUT_REQUIRED)
    answer = ChatMessage.user("this", metadata={"a": 1, "b": 2})
    first = await store.respond(task.id, answer)
    assert await store.respond(task.id, answer) == first
    lease = (await claimed(store)).lease
    working = await found(store, task)
    await store.respond(task.id, answer)
    assert await found(store, task) == working
    await store.transition(lease, "completed")
    assert (await store.respond(task.id, answer)).state is TaskState.COMPLETED
    assert texts((await found(store, task)).messages) == ["Tides of Brest?", "this"]


async def test_the_same_answer_id_with_another_body_is_a_conflict(store: Any) -> None:
    task = await brought_to(store, TaskState.INPUT_REQUIRED)
    await store.respond(task.id, ChatMessage.user("this", id="m1"))
    before = await found(store, task)
    with pytest.raises(ConflictError):
        await store.respond(task.id, ChatMessage.user("that", id="m1"))
    assert await found(store, task) == before


async def test_10_concurrent_answers_with_one_id_are_taken_once(store: Any) -> None:
    task = await brought_to(store, TaskState.INPUT_REQUIRED)
    answer = ChatMessage.user("this")
    await asyncio.gather(*(store.respond(task.id, answer) for _ in range(10)))
    assert texts((await found(store, task)).messages) == ["Tides of Brest?", "this"]
    await check_invariants(store, submitted=1)


async def test_of_two_different_answers_at_once_one_is_taken(store: Any) -> None:
    task = await brought_to(store, TaskState.AUTH_REQUIRED)
    outcomes = await asyncio.gather(
        *(store.respond(task.id, ChatMessage.user(text)) for text in ("this", "that")),
        return_exceptions=True,
    )
    refused = [one for one in outcomes if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [IllegalTransitionError]
    assert len((await found(store, task)).messages) == 2


async def test_an_answer_to_a_task_that_asked_nothing_is_refused(store: Any) -> None:
    for state in (TaskState.SUBMITTED, TaskState.WORKING, TaskState.PAUSED):
        task = await brought_to(store, state)
        with pytest.raises(IllegalTransitionError, match=f"asks nothing, it is {state}"):
            await store.respond(task.id, ChatMessage.user("what?"))
        assert texts((await found(store, task)).messages) == ["Tides of Brest?"]
        await store.cancel(task.id)


async def test_cancel_of_a_task_that_is_not_running_is_at_once(store: Any) -> None:
    for state in (TaskState.SUBMITTED, TaskState.PAUSED, *sorted(WAITING)):
        task = await brought_to(store, state)
        canceled = await store.cancel(task.id, note="no longer needed")
        assert (canceled.state, canceled.note) == (TaskState.CANCELED, "no longer needed")
        assert await store.claim("w1") == []


async def test_cancel_of_a_running_task_is_requested_and_confirmed_by_its_worker(
    store: Any,
) -> None:
    lease = await leased(store)
    asked = await store.cancel(lease.task_id)
    assert (asked.state, asked.cancel_requested) == (TaskState.WORKING, True)
    assert (await store.heartbeat(lease)).cancel_requested
    done = await store.transition(lease, "canceled", note="stopped")
    assert (done.state, done.note, done.cancel_requested) == (TaskState.CANCELED, "stopped", False)


async def test_cancel_of_a_terminal_task_changes_nothing(store: Any) -> None:
    for state in sorted(TERMINAL):
        before = await brought_to(store, state)
        assert (await store.cancel(before.id, note="too late")).state is state
        assert await found(store, before) == before


async def test_a_cancel_that_is_requested_twice_is_requested_once(store: Any) -> None:
    lease = await leased(store)
    first = await store.cancel(lease.task_id)
    assert await store.cancel(lease.task_id) == first


async def test_pause_of_a_queued_task_is_at_once_and_it_is_not_claimed(store: Any) -> None:
    task = await submitted(store)
    paused = await store.pause(task.id, note="wait")
    assert (paused.state, paused.note) == (TaskState.PAUSED, "wait")
    assert not paused.pause_requested
    assert await store.claim("w1") == []
    assert await store.pause(task.id) == paused


async def test_pause_of_a_running_task_is_requested_and_confirmed_by_its_worker(
    store: Any,
) -> None:
    lease = await leased(store)
    asked = await store.pause(lease.task_id)
    assert (asked.state, asked.pause_requested) == (TaskState.WORKING, True)
    assert (await store.heartbeat(lease)).pause_requested
    paused = await store.transition(lease, "paused")
    assert (paused.state, paused.pause_requested) == (TaskState.PAUSED, False)
    assert await store.claim("w1") == []


async def test_pause_of_a_waiting_task_holds_it_when_the_answer_comes(store: Any) -> None:
    for state in sorted(WAITING):
        task = await brought_to(store, state)
        asked = await store.pause(task.id)
        assert (asked.state, asked.pause_requested) == (state, True)
        held = await store.respond(task.id, ChatMessage.user("this"))
        assert (held.state, held.pause_requested) == (TaskState.PAUSED, False)
        assert await store.claim("w1") == []


async def test_a_pause_that_is_requested_twice_is_requested_once(store: Any) -> None:
    lease = await leased(store)
    first = await store.pause(lease.task_id)
    assert await store.pause(lease.task_id) == first


async def test_resume_takes_a_paused_task_back_to_the_queue(store: Any) -> None:
    task = await submitted(store)
    await store.pause(task.id)
    assert (await store.resume(task.id)).state is TaskState.SUBMITTED
    assert (await claimed(store)).task.id == task.id


async def test_resume_withdraws_a_pause_that_was_only_requested(store: Any) -> None:
    lease = await leased(store)
    await store.pause(lease.task_id)
    resumed = await store.resume(lease.task_id)
    assert (resumed.state, resumed.pause_requested) == (TaskState.WORKING, False)
    assert not (await store.heartbeat(lease)).pause_requested
    await store.transition(lease, "input-required")
    await store.pause(lease.task_id)
    await store.resume(lease.task_id)
    answered = await store.respond(lease.task_id, ChatMessage.user("this"))
    assert answered.state is TaskState.SUBMITTED


async def test_resume_of_a_task_that_is_not_paused_changes_nothing(store: Any) -> None:
    for state in (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED):
        before = await brought_to(store, state)
        await store.resume(before.id)
        assert await found(store, before) == before
        await store.cancel(before.id)


async def test_a_paused_task_keeps_its_run_after(harness: Harness, store: Any) -> None:
    task = await submitted(store, run_after=timedelta(seconds=60))
    assert (await store.pause(task.id)).run_after == task.run_after
    assert (await store.resume(task.id)).run_after == task.run_after
    assert await store.claim("w1") == []
    await harness.elapse(60)
    assert (await claimed(store)).task.id == task.id


async def test_a_terminal_task_can_be_neither_answered_nor_paused_nor_resumed(store: Any) -> None:
    for state in sorted(TERMINAL):
        before = await brought_to(store, state)
        with pytest.raises(IllegalTransitionError):
            await store.respond(before.id, ChatMessage.user("hello?"))
        with pytest.raises(IllegalTransitionError):
            await store.pause(before.id)
        with pytest.raises(IllegalTransitionError):
            await store.resume(before.id)
        assert await found(store, before) == before
    await check_invariants(store, submitted=len(TERMINAL))


async def test_retry_of_a_terminal_task_submits_a_new_one_and_leaves_the_old_as_it_was(
    store: Any,
) -> None:
    for state in sorted(TERMINAL):
        old = await brought_to(
            store, state, owner="ana", metadata={"a": 1}, max_attempts=2, agent="writer/a1"
        )
        new = await found(store, await store.retry(old.id, owner="ana"))
        assert new.id != old.id
        assert (new.state, new.retry_of) == (TaskState.SUBMITTED, old.id)
        assert (new.owner, new.session_id, new.agent) == ("ana", old.session_id, old.agent)
        assert (new.metadata, new.max_attempts, new.fence) == ({"a": 1}, 2, 0)
        assert texts(new.messages) == ["Tides of Brest?"]
        assert new.messages[0].id != old.messages[0].id
        assert await found(store, old) == old
        await store.cancel(new.id, owner="ana")


async def test_retry_of_a_live_task_is_refused(store: Any) -> None:
    for state in (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED):
        task = await brought_to(store, state)
        with pytest.raises(IllegalTransitionError):
            await store.retry(task.id)
        with pytest.raises(IllegalTransitionError):
            await submitted(store, retry_of=task.id, submit_key="k1")
        await store.cancel(task.id)
    await check_invariants(store, submitted=3)


async def test_retry_with_a_submit_key_is_done_once(harness: Harness, store: Any) -> None:
    old = await brought_to(store, TaskState.FAILED)
    first = await store.retry(old.id, submit_key="k1")
    await harness.elapse(LONG)
    assert (await store.retry(old.id, submit_key="k1")).id == first.id
    assert (await store.retry(old.id)).id != first.id


async def test_a_submit_that_names_what_it_retries_goes_into_that_tasks_context(store: Any) -> None:
    old = await brought_to(store, TaskState.FAILED, session_id="c1")
    new = await submitted(store, "in other words", retry_of=old.id)
    assert (new.session_id, new.retry_of) == ("c1", old.id)
