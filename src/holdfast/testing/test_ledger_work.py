"""The promises of ``LeaseLedger``: what becomes of the work."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import LONG, claimed, found, leased, submitted, texts
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, IllegalTransitionError, InvalidInputError
from holdfast.values.lifecycle import EDGES, TERMINAL, Actor, TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import Completion, Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

WAYS_OUT = [
    edge.to_state
    for edge in EDGES
    if edge.from_state is TaskState.WORKING and Actor.WORKER in edge.actors
]


async def test_a_worker_can_end_and_suspend_a_task_in_every_way_the_table_has(store: Any) -> None:
    for state in WAYS_OUT:
        for name in (state, state.value):
            lease = await leased(store)
            task = await store.transition(lease, name)
            assert (task.state, task.worker, task.lease_expires_at) == (state, "", None)
            assert (await found(store, lease.task_id)).state is state
            await store.cancel(lease.task_id)
    await check_invariants(store, submitted=2 * len(WAYS_OUT))


async def test_a_worker_cannot_move_a_task_along_an_edge_that_is_not_in_the_table(
    store: Any,
) -> None:
    lease = await leased(store)
    before = await found(store, lease.task_id)
    with pytest.raises(IllegalTransitionError):
        await store.transition(lease, "working", message=ChatMessage.assistant("hm"))
    assert await found(store, lease.task_id) == before


async def test_complete_many_completes_each_task_whose_lease_holds_and_leaves_the_others_alone(
    harness: Harness, store: Any
) -> None:
    stale = await leased(store)
    await harness.elapse(LONG)
    await store.recover_expired()
    again = (await claimed(store, "w2")).lease
    good = [await leased(store, text=f"task {number}") for number in range(3)]
    unknown = replace(stale, task_id="nobody")
    reached = await store.complete_many([good[0], stale, good[1], unknown, good[2]])
    done = TaskState.COMPLETED
    assert reached == [done, None, done, None, done]
    for lease in good:
        task = await found(store, lease.task_id)
        assert (task.state, task.worker, task.lease_expires_at) == (done, "", None)
    assert (await found(store, again.task_id)).state is TaskState.WORKING
    assert await store.complete_many(good) == [None] * 3
    with pytest.raises(InvalidInputError):
        await store.complete_many([again, again])
    await check_invariants(store, submitted=4)


async def test_complete_many_notifies_followers_as_each_transition_would(store: Any) -> None:
    leases = [await leased(store, text=f"task {number}") for number in range(2)]
    await store.upsert_push_config(leases[0].task_id, PushConfig("p1", "https://example.org"))

    async def follow(lease: Lease) -> list[Any]:
        return [event async for event in store.follow(lease.task_id)]

    following = [asyncio.create_task(follow(lease)) for lease in leases]
    await store.complete_many(leases)
    for lease, seen in zip(leases, await asyncio.gather(*following), strict=True):
        assert seen == await store.events(lease.task_id)
        assert seen[-1].body.to_state is TaskState.COMPLETED
    [announced] = await store.list_outbox(leases[0].task_id)
    assert announced.event.body.to_state is TaskState.COMPLETED


async def test_a_cancel_requested_before_complete_many_wins(store: Any) -> None:
    first, second = [await leased(store, text=text) for text in ("one", "two")]
    await store.cancel(first.task_id)
    assert await store.complete_many([first, second]) == [TaskState.CANCELED, TaskState.COMPLETED]
    task = await found(store, first.task_id)
    assert task.state is TaskState.CANCELED
    assert "cancel was requested" in task.note


async def test_complete_many_of_nothing_does_nothing(store: Any) -> None:
    assert await store.complete_many([]) == []


async def test_complete_many_stores_messages_and_results_as_each_transition_would(
    store: Any,
) -> None:
    messages = [ChatMessage.assistant("low at nine"), None, ChatMessage.assistant("done"), None]
    results: list[Any] = [{"pages": [1, None]}, "a text", None, None]
    ends = [
        Completion(await leased(store, text=f"task {at}"), message, result)
        for at, (message, result) in enumerate(zip(messages, results, strict=True))
    ]
    single = await leased(store, text="task 0")
    await store.upsert_push_config(ends[0].lease.task_id, PushConfig("p1", "https://example.org"))
    assert await store.complete_many(ends) == [TaskState.COMPLETED] * 4
    for end in ends:
        task = await found(store, end.lease.task_id)
        assert (task.status_message, task.result) == (end.message, end.result)
        assert task.messages[1:] == ([end.message] if end.message else [])
        assert await store.replay(task.id, task.version) == replace(task, lease_expires_at=None)
    again = ChatMessage.assistant("low at nine")
    await store.transition(single, "completed", message=again, result=results[0])
    first, one = [await store.events(lease.task_id) for lease in (ends[0].lease, single)]
    assert [(event.seq, event.kind) for event in first] == [(e.seq, e.kind) for e in one]
    sent = await store.list_outbox(ends[0].lease.task_id)
    assert [entry.event.kind for entry in sent] == ["message", "transition"]
    assert await store.complete_many(ends) == [None] * 4
    with pytest.raises(InvalidInputError, match=r"leases\[0\]\.result"):
        await store.complete_many([Completion(single, result={1})])
    await check_invariants(store, submitted=5)


async def test_complete_many_leaves_alone_a_task_whose_message_has_the_id_of_another_one(
    store: Any,
) -> None:
    clash, known, good, canceled = [await leased(store, text=text) for text in "abcd"]
    said = ChatMessage.assistant("said before")
    await store.append_message(clash, said)
    await store.append_message(known, said)
    await store.cancel(canceled.task_id)
    other = ChatMessage.assistant("something else", id=said.id)
    ends = [
        Completion(clash, other, 1),
        Completion(known, said, 2),
        Completion(good, other, 3),
        Completion(canceled, other, 4),
    ]
    done = TaskState.COMPLETED
    assert await store.complete_many(ends) == [None, done, done, TaskState.CANCELED]
    states = [await found(store, end.lease.task_id) for end in ends]
    assert [(task.state, task.result) for task in states] == [
        *((TaskState.WORKING, None), (done, 2), (done, 3), (TaskState.CANCELED, None))
    ]
    assert [task.status_message for task in states[1:3]] == [said, other]
    assert states[0].messages[1:] == [said]
    await check_invariants(store, submitted=4)


async def test_an_unknown_state_is_refused(store: Any) -> None:
    lease = await leased(store)
    for state in ("done", "", "COMPLETED", None, 1):
        with pytest.raises(InvalidInputError):
            await store.transition(lease, state)
    assert (await found(store, lease.task_id)).state is TaskState.WORKING


async def test_the_message_of_a_transition_is_in_the_history_and_is_the_status_message(
    store: Any,
) -> None:
    lease = await leased(store)
    question = ChatMessage.assistant("which chapter?")
    task = await store.transition(lease, "input-required", message=question)
    assert task.status_message == question
    task = await store.get(lease.task_id)
    assert task.status_message == question
    assert texts(task.messages) == ["Tides of Brest?", "which chapter?"]


async def test_the_status_message_and_the_note_are_those_of_the_last_change_of_state(
    store: Any,
) -> None:
    lease = await leased(store)
    await store.transition(
        lease, "input-required", message=ChatMessage.assistant("which?"), note="in chapter 2"
    )
    assert (await found(store, lease.task_id)).note == "in chapter 2"
    answered = await store.respond(lease.task_id, ChatMessage.user("this"))
    assert (answered.status_message, answered.note) == (None, "")


async def test_a_failed_attempt_goes_back_to_the_queue_and_waits_for_its_run_after(
    harness: Harness, store: Any
) -> None:
    one = await submitted(store)
    lease = (await claimed(store)).lease
    later = one.created_at + timedelta(seconds=60)
    task = await store.transition(lease, "submitted", run_after=later, note="it broke")
    assert (task.state, task.run_after, task.note) == (TaskState.SUBMITTED, later, "it broke")
    assert task.attempts == 1
    await harness.elapse(59)
    assert await store.claim("w1") == []
    await harness.elapse(1)
    again = await claimed(store)
    assert (again.task.attempts, again.task.run_after) == (2, None)


async def test_a_run_after_given_as_a_timedelta_counts_from_the_engines_now(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await harness.elapse(5)
    task = await store.transition(lease, "submitted", run_after=timedelta(seconds=10))
    assert task.run_after == task.updated_at + timedelta(seconds=10)
    other = await submitted(store, run_after=timedelta(seconds=20))
    assert other.run_after == other.updated_at + timedelta(seconds=20)


async def test_a_failed_attempt_at_max_attempts_ends_the_task_as_failed(store: Any) -> None:
    await submitted(store, max_attempts=2)
    first, task = [
        await store.transition((await claimed(store)).lease, "submitted", note="it broke")
        for _ in range(2)
    ]
    assert (first.state, task.state) == (TaskState.SUBMITTED, TaskState.FAILED)
    assert "2 attempts" in task.note
    assert "it broke" in task.note
    assert task.run_after is None


async def test_a_sleep_sets_the_attempts_back(harness: Harness, store: Any) -> None:
    await submitted(store, max_attempts=1)
    for _ in range(3):
        lease = (await claimed(store)).lease
        wait = timedelta(seconds=60)
        task = await store.transition(lease, "submitted", run_after=wait, progress=True)
        assert (task.state, task.attempts) == (TaskState.SUBMITTED, 0)
        await harness.elapse(60)


async def test_run_after_and_progress_go_only_with_submitted(store: Any) -> None:
    lease = await leased(store)
    before = await found(store, lease.task_id)
    with pytest.raises(InvalidInputError):
        await store.transition(lease, "completed", run_after=timedelta(seconds=1))
    with pytest.raises(InvalidInputError):
        await store.transition(lease, "paused", progress=True)
    assert await found(store, lease.task_id) == before


async def test_a_step_key_for_the_answer_goes_only_with_a_question(store: Any) -> None:
    lease = await leased(store)
    before = await found(store, lease.task_id)
    with pytest.raises(InvalidInputError):
        await store.transition(lease, "submitted", ask=StepKey("scope", kind="ask"))
    with pytest.raises(InvalidInputError):
        await store.transition(lease, "input-required", ask="scope")
    assert await found(store, lease.task_id) == before


async def test_a_question_whose_step_is_stored_already_is_a_conflict(store: Any) -> None:
    lease = await leased(store)
    scope = StepKey("scope", kind="ask")
    await store.record_step(lease, scope, "all of it")
    before = await found(store, lease.task_id)
    with pytest.raises(ConflictError):
        await store.transition(
            lease, "input-required", message=ChatMessage.assistant("?"), ask=scope
        )
    assert await found(store, lease.task_id) == before


async def test_the_answer_to_a_question_is_stored_as_its_step(store: Any) -> None:
    lease = await leased(store)
    scope = StepKey("scope", kind="ask")
    await store.transition(lease, "auth-required", ask=scope)
    assert await store.steps(lease.task_id) == []
    answer = ChatMessage.user("chapter 2")
    await store.respond(lease.task_id, answer)
    [step] = await store.steps(lease.task_id)
    assert (step.key, step.result) == (scope, {"message_id": answer.id})
    again = (await claimed(store)).lease
    await store.transition(again, "input-required")
    await store.respond(lease.task_id, ChatMessage.user("to a question without a step"))
    assert len(await store.steps(lease.task_id)) == 1


async def test_a_cancel_that_was_requested_comes_before_whatever_the_worker_reports(
    store: Any,
) -> None:
    for state in WAYS_OUT:
        lease = await leased(store)
        await store.cancel(lease.task_id)
        task = await store.transition(lease, state, message=ChatMessage.assistant("and yet"))
        assert task.state is TaskState.CANCELED
        assert texts((await found(store, lease.task_id)).messages)[-1] == "and yet"
        assert await store.claim("w1") == []
    await check_invariants(store, submitted=len(WAYS_OUT))


async def test_a_completion_that_races_a_cancel_never_wins_after_it(store: Any) -> None:
    for at in range(10):
        lease = await leased(store)
        both = [store.cancel(lease.task_id), store.transition(lease, "completed")]
        if at % 2:
            completed, canceled = await asyncio.gather(*reversed(both))
        else:
            canceled, completed = await asyncio.gather(*both)
        final = (await found(store, lease.task_id)).state
        assert completed.state is final
        if canceled.state is TaskState.WORKING:
            assert final is TaskState.CANCELED
        else:
            assert canceled.state is final is TaskState.COMPLETED
    await check_invariants(store, submitted=10)


async def test_a_pause_that_was_requested_holds_a_task_on_its_way_to_the_queue(store: Any) -> None:
    wait = timedelta(seconds=60)
    lease = await leased(store)
    await store.pause(lease.task_id)
    slept = await store.transition(lease, "submitted", run_after=wait, progress=True)
    assert (slept.state, slept.run_after) == (TaskState.PAUSED, slept.updated_at + wait)
    lease = await leased(store)
    await store.pause(lease.task_id)
    assert (await store.release(lease)).state is TaskState.PAUSED
    assert await store.claim("w1") == []


async def test_a_completion_comes_before_a_pause_that_was_requested(store: Any) -> None:
    for state in sorted(TERMINAL):
        lease = await leased(store)
        await store.pause(lease.task_id)
        task = await store.transition(lease, state)
        assert (task.state, task.pause_requested) == (state, False)


async def test_a_pause_sets_the_attempts_back(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    assert (await store.transition(lease, "paused")).attempts == 0
    await store.resume(lease.task_id)
    await claimed(store)
    await harness.elapse(LONG)
    await store.recover_expired()
    assert (await store.pause(lease.task_id)).attempts == 0


async def test_a_carried_out_pause_is_not_requested_any_more(store: Any) -> None:
    lease = await leased(store)
    await store.pause(lease.task_id)
    await store.transition(lease, "paused")
    await store.resume(lease.task_id)
    again = await claimed(store)
    assert not again.lease.pause_requested
    assert (await store.release(again.lease)).state is TaskState.SUBMITTED


async def test_a_released_task_can_be_claimed_at_once_and_has_not_used_an_attempt(
    store: Any,
) -> None:
    await submitted(store, max_attempts=1)
    for fence in (1, 2, 3):
        one = await claimed(store)
        assert (one.task.fence, one.task.attempts) == (fence, 1)
        task = await store.release(one.lease, note="shutting down")
        assert (task.state, task.attempts) == (TaskState.SUBMITTED, 0)
        assert (task.note, task.worker) == ("shutting down", "")


async def test_what_was_recovered_or_released_goes_on_before_what_came_after_it(
    harness: Harness, store: Any
) -> None:
    first = await submitted(store, "first")
    await harness.elapse(1)
    await submitted(store, "second")
    [one] = await store.claim("w1", limit=1)
    assert one.task.id == first.id
    await harness.elapse(LONG)
    await store.recover_expired()
    [again] = await store.claim("w2", limit=1)
    assert again.task.id == first.id
    await harness.elapse(1)
    await store.release(again.lease)
    [last] = await store.claim("w3", limit=1)
    assert last.task.id == first.id


async def test_a_released_task_with_a_cancel_requested_is_canceled(store: Any) -> None:
    lease = await leased(store)
    await store.cancel(lease.task_id)
    assert (await store.release(lease)).state is TaskState.CANCELED
