"""The promises of ``AdoptedLedger``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import (
    LONG,
    adopted,
    claimed,
    found,
    leased,
    recorded,
    submitted,
    texts,
)
from holdfast.values.content import ChatMessage, TextBlock, text_of
from holdfast.values.errors import (
    AlreadyExistsError,
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    LeaseLostError,
    NotFoundError,
    VersionConflictError,
)
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.events import ArtifactChunk, StepKey
from holdfast.values.tasks.records import Lease, TaskRecord
from holdfast.values.tasks.reports import Report, StatusReport

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")
THEN = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _chunk(text: str, **how: Any) -> ArtifactChunk:
    return ArtifactChunk("a1", [TextBlock(text)], **how)


async def test_an_adopted_task_comes_back_as_it_was_reported(store: Any) -> None:
    made = await adopted(
        store,
        ChatMessage.user("Tides of Brest?"),
        StatusReport("working", ChatMessage.assistant("one moment"), note="n", at=THEN),
        _chunk("6:12", name="tides", metadata={"unit": "UTC"}),
        owner="ana",
        session_id="c1",
        metadata={"a": 1},
    )
    task = await found(store, "t1")
    assert (made.id, made.version, made.adopted) == ("t1", task.version, True)
    assert (task.state, task.owner, task.session_id) == (TaskState.WORKING, "ana", "c1")
    assert (str(task.agent), task.metadata, task.note) == ("writer", {"a": 1}, "n")
    assert texts(task.messages) == ["Tides of Brest?", "one moment"]
    assert task.status_message is not None
    assert (task.status_message.text, task.updated_at) == ("one moment", THEN)
    [artifact] = task.artifacts
    assert (artifact.name, artifact.metadata) == ("tides", {"unit": "UTC"})
    assert (task.adopted, task.worker, task.fence) == (True, "", 0)
    other = await store.adopt("t2", agent="writer")
    assert (other.state, other.owner) == (TaskState.SUBMITTED, "")
    assert other.session_id not in ("", "c1")
    assert not (await submitted(store)).adopted


async def test_an_adopted_task_is_never_claimed(harness: Harness, store: Any) -> None:
    await adopted(store)
    await adopted(store, StatusReport("working"), StatusReport("submitted"), task_id="t2")
    await harness.elapse(LONG)
    for serial in (True, False):
        assert await store.claim("w1", limit=10, serial_contexts=serial) == []
    mine = await submitted(store)
    assert (await claimed(store)).task.id == mine.id


async def test_an_adopted_task_is_never_recovered(harness: Harness, store: Any) -> None:
    task = await adopted(store, StatusReport("working"))
    await harness.elapse(LONG)
    assert await store.recover_expired(limit=10) == []
    assert await found(store, "t1") == task
    assert await store.claim("w1", limit=10) == []


async def test_an_adopted_task_at_work_holds_up_no_other_task_of_its_context(store: Any) -> None:
    for task_id in ("t1", "t2"):
        await adopted(store, StatusReport("working"), task_id=task_id, session_id="c1")
    mine = await submitted(store, session_id="c1")
    taken = await claimed(store, serial_contexts=True)
    assert taken.task.id == mine.id
    await recorded(store, StatusReport("completed"))
    await store.transition(taken.lease, "completed")


async def test_no_lease_on_an_adopted_task_is_good(store: Any) -> None:
    task = await adopted(store, StatusReport("working"))
    lease = Lease("t1", task.fence, "", THEN)
    with pytest.raises(LeaseLostError):
        await store.heartbeat(lease)
    with pytest.raises(LeaseLostError):
        await store.append_message(lease, ChatMessage.assistant("mine"))
    with pytest.raises(LeaseLostError):
        await store.transition(lease, "completed")
    assert await store.complete_many([lease]) == [None]
    with pytest.raises(LeaseLostError):
        await store.record_step(lease, StepKey("s1"), 1)
    assert (await found(store, "t1")).version == task.version


async def test_the_id_of_an_adopted_task_is_taken_once(store: Any) -> None:
    task = await adopted(store, owner="ana")
    mine = await submitted(store)
    for task_id, owner in (("t1", "ana"), ("t1", "bo"), (mine.id, "")):
        with pytest.raises(AlreadyExistsError):
            await adopted(store, StatusReport("failed"), task_id=task_id, owner=owner)
    assert await found(store, "t1") == task
    assert [one.tasks for one in (await store.list_contexts()).contexts] == [1, 1]


async def test_of_10_concurrent_adoptions_of_one_id_one_is_taken(store: Any) -> None:
    tried = await asyncio.gather(
        *(adopted(store, metadata={"n": n}) for n in range(10)), return_exceptions=True
    )
    [made] = [one for one in tried if isinstance(one, TaskRecord)]
    assert sum(isinstance(one, AlreadyExistsError) for one in tried) == 9
    assert (await found(store, "t1")).metadata == made.metadata


async def test_the_timeline_of_an_adopted_task_has_every_report_in_order(store: Any) -> None:
    await adopted(store, ChatMessage.user("hello"))
    asked = StatusReport("input-required", ChatMessage.assistant("which?"))
    await recorded(store, StatusReport("working"), _chunk("x"), _chunk("y", append=True), asked)
    events = await store.events("t1")
    assert [event.seq for event in events] == list(range(1, 8))
    assert [event.kind for event in events] == [
        *("transition", "message", "transition"),
        *("artifact", "artifact", "message", "transition"),
    ]
    moves = [event.body for event in events if event.kind == "transition"]
    states = [(move.from_state, move.to_state) for move in moves]
    assert states == [
        (None, "submitted"),
        ("submitted", "working"),
        ("working", "input-required"),
    ]
    assert [move.seq for move in moves] == [1, 2, 3]


async def test_replay_of_an_adopted_task_is_the_task_as_it_is(store: Any) -> None:
    await adopted(store, ChatMessage.user("hello"), metadata={"a": 1})
    await recorded(
        store,
        StatusReport("working", at=THEN),
        _chunk("x"),
        StatusReport("completed", ChatMessage.assistant("done"), note="n", metadata={"b": 2}),
    )
    task = await found(store, "t1")
    assert await store.replay("t1", task.version) == task
    before = await store.replay("t1", 3)
    assert (before.state, before.updated_at, before.artifacts) == (TaskState.WORKING, THEN, [])


async def test_an_adopted_task_goes_to_any_state_until_it_has_ended(store: Any) -> None:
    waypoints = [state for state in TaskState if state not in TERMINAL]
    for at, end in enumerate(sorted(TERMINAL)):
        name = f"t{at}"
        await adopted(store, task_id=name)
        for state in (*waypoints, *reversed(waypoints), end):
            await recorded(store, StatusReport(state), task_id=name)
            assert (await found(store, name)).state is state


async def test_an_adopted_task_that_has_ended_takes_no_report(store: Any) -> None:
    await adopted(store, StatusReport("completed"))
    task = await found(store, "t1")
    late: Sequence[Report] = (
        *(StatusReport("working"), StatusReport("completed")),
        *(ChatMessage.assistant("late"), _chunk("late")),
    )
    for report in late:
        with pytest.raises(IllegalTransitionError):
            await recorded(store, report)
    with pytest.raises(IllegalTransitionError):
        await adopted(store, StatusReport("failed"), late[2], task_id="t2")
    assert await found(store, "t1") == task
    assert await store.get("t2") is None
    assert await recorded(store) == task.version


async def test_a_report_at_another_version_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    before = await adopted(store)
    await recorded(store, StatusReport("working"))
    task = await found(store, "t1")
    for version in (before.version, task.version + 1, 0):
        with pytest.raises(VersionConflictError) as error:
            await store.record("t1", [StatusReport("failed")], expected_version=version)
        assert (error.value.expected, error.value.actual) == (version, task.version)
        with pytest.raises(VersionConflictError):
            await store.record("t1", [StatusReport("canceled")], expected_version=version)
    assert await found(store, "t1") == task


async def test_of_10_concurrent_reports_at_one_version_one_is_taken(store: Any) -> None:
    task = await adopted(store)

    async def report(text: str) -> Any:
        said = [StatusReport("working"), ChatMessage.assistant(text)]
        return await store.record("t1", said, expected_version=task.version)

    tried = await asyncio.gather(*(report(f"{n}") for n in range(10)), return_exceptions=True)
    [version] = [one for one in tried if isinstance(one, int)]
    assert sum(isinstance(one, VersionConflictError) for one in tried) == 9
    stored = await found(store, "t1")
    assert (stored.version, len(stored.messages)) == (version, 1)


async def test_a_cancel_needs_no_version_unless_the_task_has_ended(store: Any) -> None:
    await adopted(store, StatusReport("working"))
    cancel = StatusReport("canceled", ChatMessage.assistant("stopped"), note="by ana")
    version = await store.record("t1", [cancel])
    task = await found(store, "t1")
    assert (task.state, task.note, task.version) == (TaskState.CANCELED, "by ana", version)
    with pytest.raises(IllegalTransitionError):
        await store.record("t1", [StatusReport("canceled")])
    assert await found(store, "t1") == task


async def test_a_report_without_a_version_that_is_no_cancel_is_refused(store: Any) -> None:
    task = await adopted(store)
    cancel = StatusReport("canceled")
    for reports in ([], [StatusReport("working")], [_chunk("x")], [_chunk("x"), cancel]):
        with pytest.raises(InvalidInputError) as error:
            await store.record("t1", reports)
        assert error.value.field == "expected_version"
    for wrong, field in (("x", "reports[0]"), (StatusReport("done"), "reports[0].state")):
        with pytest.raises(InvalidInputError) as error:
            await store.record("t1", [wrong], expected_version=task.version)
        assert error.value.field == field
    for never in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)):
        with pytest.raises(InvalidInputError) as error:
            await recorded(store, StatusReport("working", at=never))
        assert error.value.field == "reports[0].at"
    with pytest.raises(InvalidInputError) as error:
        await recorded(store, _chunk("x", step=StepKey("s1")))
    assert error.value.field == "reports[0].step"
    assert await found(store, "t1") == task


async def test_reports_are_taken_all_or_none(store: Any) -> None:
    await adopted(store, ChatMessage.user("hello", id="m1"))
    task = await found(store, "t1")
    other = ChatMessage.user("other", id="m1")
    with pytest.raises(ConflictError):
        await recorded(store, StatusReport("working"), _chunk("x"), other)
    one, two = ChatMessage.user("one", id="m2"), ChatMessage.user("two", id="m2")
    with pytest.raises(ConflictError):
        await recorded(store, StatusReport("working"), one, StatusReport("failed", two))
    with pytest.raises(ConflictError):
        await adopted(store, one, two, task_id="t2")
    assert await found(store, "t1") == task
    assert await store.get("t2") is None


async def test_a_reported_message_is_stored_once(store: Any) -> None:
    hello = ChatMessage.user("hello", id="m1")
    await adopted(store, hello, hello)
    version = await recorded(store, hello)
    assert await recorded(store, StatusReport("working", hello)) == version + 1
    task = await found(store, "t1")
    assert texts(task.messages) == ["hello"]
    assert task.status_message is not None
    assert task.status_message.id == "m1"


async def test_chunks_of_an_adopted_task_follow_each_other_after_the_last_one_too(
    store: Any,
) -> None:
    await adopted(store, _chunk("a", append=True), _chunk("b", append=True, last_chunk=True))
    await recorded(store, _chunk("c", append=True))
    [artifact] = (await found(store, "t1")).artifacts
    assert (text_of(artifact.parts), artifact.complete) == ("abc", False)
    await recorded(store, _chunk("d", last_chunk=True))
    [artifact] = (await found(store, "t1")).artifacts
    assert (text_of(artifact.parts), artifact.complete) == ("d", True)


async def test_a_status_report_replaces_the_metadata_if_it_has_any(store: Any) -> None:
    await adopted(store, metadata={"a": 1})
    for given, stored in ((None, {"a": 1}), ({"b": 2}, {"b": 2}), (None, {"b": 2}), ({}, {})):
        await recorded(store, StatusReport("working", metadata=given))
        assert (await found(store, "t1")).metadata == stored


async def test_pages_sort_an_adopted_task_by_the_time_that_was_reported(store: Any) -> None:
    first = datetime(1970, 1, 1, tzinfo=UTC)
    for name, when in (("t1", THEN), ("t2", first), ("t3", THEN + timedelta(days=1))):
        await adopted(store, StatusReport("working", at=when), task_id=name, owner="ana")
    await adopted(store, StatusReport("working", at=first), task_id="t4", owner="ana")
    pages, cursor = list[str](), None
    while True:
        page = await store.list(owner="ana", limit=1, cursor=cursor)
        pages += [task.id for task in page.tasks]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == ["t3", "t1", "t4", "t2"]
    later = await store.list(owner="ana", updated_after=THEN)
    assert [task.id for task in later.tasks] == ["t3", "t1"]


async def test_a_follower_sees_the_reports_of_an_adopted_task(store: Any) -> None:
    await adopted(store)
    followed = store.follow("t1")
    assert (await anext(followed)).seq == 1
    waiting = asyncio.ensure_future(anext(followed))
    await recorded(store, _chunk("x"), StatusReport("completed"))
    seen = [await waiting] + [event async for event in followed]
    assert [event.kind for event in seen] == ["artifact", "transition"]


async def test_a_report_on_a_task_of_workers_is_refused(store: Any) -> None:
    lease = await leased(store)
    task = await found(store, lease.task_id)
    with pytest.raises(ConflictError, match="only an adopted task"):
        await recorded(store, StatusReport("completed"), task_id=task.id)
    with pytest.raises(ConflictError, match="only an adopted task"):
        await store.record(task.id, [StatusReport("canceled")])
    assert await found(store, task.id) == task


async def test_an_adopted_task_is_neither_answered_nor_paused_nor_resumed_nor_retried(
    store: Any,
) -> None:
    await adopted(store, StatusReport("input-required"))
    task = await found(store, "t1")
    for call in (
        *(store.respond("t1", ChatMessage.user("2")), store.pause("t1")),
        *(store.resume("t1"), store.retry("t1")),
        store.submit("writer", ChatMessage.user("again"), retry_of="t1"),
    ):
        with pytest.raises(ConflictError, match="run by somebody else"):
            await call
    assert await found(store, "t1") == task
    assert (await store.cancel("t1")).state is TaskState.CANCELED
    with pytest.raises(ConflictError, match="run by somebody else"):
        await store.retry("t1")


async def test_another_owners_adopted_task_is_not_found(store: Any) -> None:
    task = await adopted(store, owner="ana")
    for owner in ("bo", ""):
        assert await store.get("t1", owner=owner) is None
        for state, version in (("working", task.version), ("canceled", None)):
            with pytest.raises(NotFoundError):
                await store.record(
                    "t1", [StatusReport(state)], owner=owner, expected_version=version
                )
    assert await found(store, "t1") == task


async def test_one_tenant_never_sees_anothers_adopted_tasks(harness: Harness) -> None:
    acme, other = (harness.store(CONTRACT, tenant=name) for name in ("acme", "other"))
    mine = await adopted(acme, StatusReport("working"), owner="ana")
    assert await other.get("t1") is None
    with pytest.raises(NotFoundError):
        await other.record("t1", [StatusReport("canceled")])
    assert not await other.delete("t1")
    theirs = await adopted(other, owner="ana", metadata={"theirs": True})
    assert await other.delete(theirs.id)
    assert await found(acme, "t1") == mine


async def test_an_adopted_id_or_owner_that_begins_with_holdfast_is_refused(store: Any) -> None:
    reserved = "holdfast.owner:3:ana:t1"
    for field, how in (
        ("task_id", {"task_id": reserved}),
        ("owner", {"owner": reserved}),
        ("session_id", {"session_id": reserved}),
    ):
        with pytest.raises(InvalidInputError) as error:
            await adopted(store, **how)
        assert error.value.field == field
    assert (await store.list()).tasks == []


async def test_an_adopted_task_is_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    await adopted(store, ChatMessage.user("hello"), StatusReport("working", at=THEN))
    task = await found(store, "t1")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await found(again, "t1") == task
    assert await recorded(again, StatusReport("completed")) == task.version + 1
