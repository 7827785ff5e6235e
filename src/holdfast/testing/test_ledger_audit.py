"""The promises of ``AuditLedger``: the timeline, followers, replay and feedback."""

from __future__ import annotations

import asyncio
from dataclasses import replace
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
    next_lease,
    submitted,
)
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.lifecycle import Actor, TaskState
from holdfast.values.tasks.events import StepKey, TaskEvent, Transition

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _eventful(harness: Harness, store: Any, *, owner: str = "") -> str:
    """The id of a task to which everything happened."""
    lease = await leased(store, owner=owner, max_attempts=9)
    key = lease.task_id
    await store.append_artifact(lease, "a1", [TextBlock("half")], name="draft")
    await harness.elapse(1)
    await store.pause(key, owner=owner, note="wait")
    await store.resume(key, owner=owner)
    lease = await next_lease(harness, store)
    await store.append_artifact(lease, "a1", [TextBlock("whole")], append=True)
    await store.record_step(lease, StepKey("fetch"), {"pages": 3}, digest="d1")
    ask = StepKey("scope", kind="ask")
    question = ChatMessage.assistant("which?")
    await store.transition(lease, "input-required", message=question, ask=ask)
    await harness.elapse(1)
    await store.pause(key, owner=owner)
    await store.respond(key, ChatMessage.user("this"), owner=owner)
    await store.resume(key, owner=owner)
    lease = (await claimed(store)).lease
    await store.append_message(lease, ChatMessage.assistant("on it"))
    await store.transition(lease, "submitted", note="it broke")
    lease = (await claimed(store)).lease
    await store.cancel(key, owner=owner, note="enough")
    await store.transition(lease, "completed", message=ChatMessage.assistant("done"))
    return key


def _kinds(events: list[TaskEvent]) -> list[str]:
    return [event.kind for event in events]


async def test_the_timeline_has_every_transition_request_message_step_and_artifact_chunk_in_order(
    harness: Harness, store: Any
) -> None:
    key = await _eventful(harness, store)
    events = await store.events(key)
    assert " ".join(_kinds(events)) == (
        "transition message transition artifact request request transition transition artifact "
        "step message transition request message step transition transition transition message "
        "transition transition request message transition"
    )
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert {event.task_id for event in events} == {key}
    [fetched, answered] = [event.body for event in events if event.kind == "step"]
    assert (fetched.result, fetched.digest) == ({"pages": 3}, "d1")
    assert answered.key == StepKey("scope", kind="ask")
    requests = [(event.body.what, event.body.note) for event in events if event.kind == "request"]
    assert requests == [("pause", "wait"), ("resume", ""), ("pause", ""), ("cancel", "enough")]
    chunks = [event.body for event in events if event.kind == "artifact"]
    assert [chunk.parts for chunk in chunks] == [[TextBlock("half")], [TextBlock("whole")]]


async def test_the_timeline_runs_from_one_without_a_gap_and_ends_at_the_tasks_version(
    harness: Harness, store: Any
) -> None:
    key = await _eventful(harness, store)
    events = await store.events(key)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (await found(store, key)).version == len(events)


async def test_every_change_of_state_is_logged_with_who_made_it_fence_attempt_and_note(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await harness.elapse(LONG)
    await store.recover_expired()
    lease = (await claimed(store, "w2")).lease
    done = await store.transition(lease, "failed", note="no luck")
    log = [event.body for event in await store.events(done.id) if event.kind == "transition"]
    assert [(one.seq, one.from_state, one.to_state, one.by, one.worker) for one in log] == [
        (1, None, "submitted", Actor.CLIENT, ""),
        (2, "submitted", "working", Actor.WORKER, "w1"),
        (3, "working", "submitted", Actor.RECOVERY, "w1"),
        (4, "submitted", "working", Actor.WORKER, "w2"),
        (5, "working", "failed", Actor.WORKER, "w2"),
    ]
    assert [(one.fence, one.attempt) for one in log] == [(0, 0), (1, 1), (1, 1), (2, 2), (2, 2)]
    assert log[-1].note == "no luck"
    assert log[-1].at == done.updated_at


async def test_the_numbers_of_the_log_run_from_one_without_a_gap(
    harness: Harness, store: Any
) -> None:
    key = await _eventful(harness, store)
    log = [event.body for event in await store.events(key) if event.kind == "transition"]
    assert [one.seq for one in log] == list(range(1, len(log) + 1))
    await check_invariants(store, submitted=1)


async def test_the_message_of_a_transition_comes_right_before_it(store: Any) -> None:
    lease = await leased(store)
    question = ChatMessage.assistant("which?")
    await store.transition(lease, "input-required", message=question)
    said, moved = (await store.events(lease.task_id))[-2:]
    assert said.body == question
    assert moved.body.message_id == question.id


async def test_events_after_a_cursor_are_those_above_it(harness: Harness, store: Any) -> None:
    key = await _eventful(harness, store)
    events = await store.events(key)
    for after in range(len(events) + 2):
        assert await store.events(key, after_seq=after) == events[after:]


async def test_a_limit_of_zero_gives_no_events(store: Any) -> None:
    task = await submitted(store)
    assert await store.events(task.id, limit=0) == []


async def test_at_most_limit_events_are_given_the_oldest_first(
    harness: Harness, store: Any
) -> None:
    key = await _eventful(harness, store)
    events = await store.events(key)
    assert await store.events(key, limit=3) == events[:3]
    assert await store.events(key, after_seq=2, limit=3) == events[2:5]
    assert await store.events(key, limit=1000) == events


async def test_the_timeline_of_an_unknown_task_is_empty(store: Any) -> None:
    assert await store.events("no such task") == []
    assert await store.events("no such task") == []
    assert await store.replay("no such task", 1) is None
    assert await store.list_feedback("no such task") == []


async def test_another_owners_timeline_is_not_found(harness: Harness, store: Any) -> None:
    key = await _eventful(harness, store, owner="ana")
    for owner in ("ben", ""):
        assert await store.events(key, owner=owner) == []
        assert await store.events(key, owner=owner) == []
        assert await store.replay(key, 1, owner=owner) is None
        with pytest.raises(NotFoundError):
            await anext(store.follow(key, owner=owner))
    assert await store.events(key, owner="ana") == await store.events(key, owner=None)


async def test_one_tenant_never_sees_anothers_timeline(harness: Harness, store: Any) -> None:
    key = await _eventful(harness, store)
    other = harness.store(CONTRACT, tenant="other")
    assert await other.events(key, owner=None) == []
    with pytest.raises(NotFoundError):
        await anext(other.follow(key, owner=None))


async def _followed(store: Any, key: str, after: int = 0) -> list[TaskEvent]:
    return [event async for event in store.follow(key, after_seq=after)]


async def test_follow_gives_what_happened_and_then_what_happens_and_ends_with_the_task(
    store: Any,
) -> None:
    lease = await leased(store)
    events = store.follow(lease.task_id)
    seen = [await anext(events) for _ in range(3)]
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    assert not waiting.done()
    await store.append_message(lease, ChatMessage.assistant("on it"))
    seen.append(await waiting)
    await store.transition(lease, "completed")
    seen += [event async for event in events]
    assert seen == await store.events(lease.task_id)
    assert seen[-1].body.to_state is TaskState.COMPLETED


async def test_follow_from_a_cursor_repeats_nothing_and_misses_nothing(store: Any) -> None:
    lease = await leased(store)
    cut = store.follow(lease.task_id)
    first = [await anext(cut) for _ in range(2)]
    await cut.aclose()
    await store.append_message(lease, ChatMessage.assistant("while nobody looked"))
    following = asyncio.ensure_future(_followed(store, lease.task_id, after=first[-1].seq))
    await asyncio.sleep(0)
    await store.transition(lease, "completed")
    assert first + await following == await store.events(lease.task_id)


async def test_every_follower_sees_the_same_order(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    other = harness.store(CONTRACT)
    followers = [
        asyncio.ensure_future(_followed(one, lease.task_id)) for one in (store, other, store)
    ]
    await asyncio.sleep(0)
    said = [ChatMessage.assistant(f"message {at}") for at in range(10)]
    await asyncio.gather(*(store.append_message(lease, message) for message in said))
    await store.transition(lease, "completed")
    first, *others = await asyncio.gather(*followers)
    assert first == await store.events(lease.task_id)
    assert others == [first, first]


async def test_follow_of_an_ended_task_ends_at_once(harness: Harness, store: Any) -> None:
    key = await _eventful(harness, store)
    events = await store.events(key)
    assert await _followed(store, key) == events
    assert await _followed(store, key, after=events[-1].seq) == []


async def test_follow_of_an_unknown_task_is_not_found(store: Any) -> None:
    with pytest.raises(NotFoundError):
        await anext(store.follow("no such task"))


async def test_a_follower_that_leaves_disturbs_nobody(store: Any) -> None:
    lease = await leased(store)
    staying = asyncio.ensure_future(_followed(store, lease.task_id))
    leaving = asyncio.ensure_future(_followed(store, lease.task_id))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await store.transition(lease, "completed")
    assert await staying == await store.events(lease.task_id)


async def test_replay_of_the_whole_timeline_is_the_task_as_it_is(
    harness: Harness, store: Any
) -> None:
    keys = [await _eventful(harness, store)]
    keys += [(await brought_to(store, state)).id for state in TaskState if state != "submitted"]
    keys.append((await submitted(store)).id)
    for key in keys:
        task = await found(store, key)
        assert await store.replay(key, task.version) == replace(task, lease_expires_at=None)
        assert await store.replay(key, task.version + 5) == replace(task, lease_expires_at=None)


async def test_replay_up_to_an_event_is_the_task_as_it_was_then(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    key = lease.task_id
    seen = []

    async def looked() -> None:
        seen.append(replace(await found(store, key), lease_expires_at=None))

    await looked()
    await store.append_artifact(lease, "a1", [TextBlock("half")])
    await looked()
    await store.pause(key)
    await looked()
    await store.record_step(lease, StepKey("fetch"), 1)
    await looked()
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    await looked()
    await harness.elapse(5)
    await store.respond(key, ChatMessage.user("this"))
    await looked()
    await store.cancel(key)
    await looked()
    assert [await store.replay(key, task.version) for task in seen] == seen


async def test_replay_before_the_first_event_is_none(store: Any) -> None:
    task = await submitted(store)
    assert await store.replay(task.id, 0) is None
    assert (await store.replay(task.id, 1)).messages == []


async def test_feedback_on_a_task_comes_back_in_order(store: Any) -> None:
    task = await submitted(store)
    first = await store.append_feedback(
        task.id, "a\x00b", rating=5, metadata={"b": 1, "a": -0.0}, feedback_id="f1"
    )
    assert (first.id, first.task_id, first.text, first.rating) == ("f1", task.id, "a\x00b", 5)
    second = await store.append_feedback(task.id, "")
    assert (second.rating, second.metadata) == (None, {})
    back = await store.list_feedback(task.id)
    assert back == [first, second]
    assert repr(back[0].metadata) == "{'b': 1, 'a': -0.0}"


async def test_feedback_can_be_given_after_the_task_has_ended_and_does_not_change_it(
    store: Any,
) -> None:
    before = await brought_to(store, TaskState.COMPLETED)
    await store.append_feedback(before.id, "well done")
    assert await found(store, before) == before


async def test_the_same_feedback_id_twice_is_taken_once(harness: Harness, store: Any) -> None:
    task = await submitted(store)
    first = await store.append_feedback(task.id, "good", metadata={"a": 1, "b": 2}, feedback_id="f")
    await harness.elapse(1)
    again = await store.append_feedback(task.id, "good", metadata={"b": 2, "a": 1}, feedback_id="f")
    assert again == first
    assert await store.list_feedback(task.id) == [first]


async def test_the_same_feedback_id_with_another_body_is_a_conflict(store: Any) -> None:
    task = await submitted(store)
    first = await store.append_feedback(task.id, "good", feedback_id="f1")
    with pytest.raises(ConflictError):
        await store.append_feedback(task.id, "bad", feedback_id="f1")
    with pytest.raises(ConflictError):
        await store.append_feedback(task.id, "good", rating=1, feedback_id="f1")
    assert await store.list_feedback(task.id) == [first]


async def test_feedback_on_an_unknown_task_is_not_found(store: Any) -> None:
    with pytest.raises(NotFoundError):
        await store.append_feedback("no such task", "good")


async def test_another_owners_feedback_is_not_found(store: Any) -> None:
    task = await submitted(store, owner="ana")
    await store.append_feedback(task.id, "good", owner="ana")
    with pytest.raises(NotFoundError):
        await store.append_feedback(task.id, "bad", owner="ben")
    assert await store.list_feedback(task.id, owner="ben") == []
    assert len(await store.list_feedback(task.id, owner="ana")) == 1


async def test_the_timeline_is_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    key = await _eventful(harness, store)
    await store.append_feedback(key, "good")
    events, opinions = await store.events(key), await store.list_feedback(key)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.events(key) == events
    assert await again.list_feedback(key) == opinions


async def test_an_event_that_a_store_returns_is_the_callers_to_mutate(
    harness: Harness, store: Any
) -> None:
    key = await _eventful(harness, store)
    before = [repr(event) for event in await store.events(key)]
    for event in await store.events(key):
        match event.kind:
            case "message":
                event.body.content.clear()
                event.body.metadata["a"] = 1
            case "artifact":
                event.body.parts.clear()
            case "step":
                event.body.result["pages"] = 4
            case _:
                assert isinstance(event.body, Transition) or event.kind == "request"
    assert [repr(event) for event in await store.events(key)] == before
