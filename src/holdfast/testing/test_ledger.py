"""The promises of ``ClientLedger``: submitting and reading tasks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import (
    LONG,
    claimed,
    found,
    submitted,
    texts,
    with_output,
)
from holdfast.values.content import ChatMessage, DataBlock, TextBlock
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _ids(store: Any, **how: Any) -> list[str]:
    return [task.id for task in (await store.list(**how)).tasks]


async def test_a_task_comes_back_as_it_was_submitted(store: Any) -> None:
    message = ChatMessage(
        "user", [TextBlock("hi"), DataBlock({"n": 1})], created_at=datetime(2029, 1, 1, tzinfo=UTC)
    )
    later = datetime(2090, 1, 1, tzinfo=UTC)
    task = await store.submit(
        AgentId("writer", "a1"),
        message,
        session_id="c1",
        owner="ana",
        metadata={"b": 1, "a": [None, 1e16]},
        submit_key="k1",
        max_attempts=3,
        run_after=later,
    )
    back = await store.get(task.id, owner="ana")
    assert (back.id, back.session_id, back.owner) == (task.id, "c1", "ana")
    assert back.agent == AgentId("writer", "a1")
    assert back.messages == [message]
    assert list(back.metadata.items()) == [("b", 1), ("a", [None, 1e16])]
    assert (back.submit_key, back.max_attempts, back.run_after) == ("k1", 3, later)
    assert (back.retry_of, back.attempts, back.fence, back.worker) == ("", 0, 0, "")
    assert not back.cancel_requested
    assert not back.pause_requested
    assert back.created_at == back.updated_at == task.created_at
    assert back.created_at.utcoffset() == timedelta(0)


async def test_a_submitted_task_has_its_id_and_context_at_once_and_begins_with_its_message(
    store: Any,
) -> None:
    task = await store.submit("writer", ChatMessage.user("hello"))
    assert task.id
    assert task.session_id
    assert task.state is TaskState.SUBMITTED
    back = await store.get(task.id)
    assert texts(back.messages) == ["hello"]
    assert back.artifacts == []


async def test_tasks_without_a_submit_key_are_never_merged(store: Any) -> None:
    message = ChatMessage.user("hello")
    first, second = [await store.submit("writer", message, session_id="c1") for _ in range(2)]
    assert first.id != second.id
    assert len(await _ids(store)) == 2


async def test_the_same_submit_key_with_the_same_content_is_the_same_task(store: Any) -> None:
    given: dict[str, Any] = {"submit_key": "k1", "metadata": {"a": 1}, "session_id": "c1"}
    message = ChatMessage.user("hello")
    first = await store.submit("writer", message, **given)
    await store.cancel(first.id)
    again = await store.submit("writer", message, **given)
    assert (again.id, again.state) == (first.id, TaskState.CANCELED)
    assert len(await _ids(store)) == 1
    assert texts((await found(store, first)).messages) == ["hello"]


async def test_the_same_submit_key_with_other_content_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    message = ChatMessage.user("hello")
    before = await store.submit("writer", message, submit_key="k1")
    soon = timedelta(seconds=1)
    for agent, said, other in (
        ("writer", ChatMessage.user("bye"), {}),
        ("reader", message, {}),
        ("writer", message, {"metadata": {"a": 1}}),
        ("writer", message, {"session_id": "c1"}),
        ("writer", message, {"max_attempts": 1}),
        ("writer", message, {"run_after": soon}),
    ):
        with pytest.raises(ConflictError):
            await store.submit(agent, said, submit_key="k1", **other)
    assert await _ids(store) == [before.id]
    assert (await found(store, before)).version == before.version


async def test_a_session_id_or_an_owner_that_begins_with_holdfast_is_refused(store: Any) -> None:
    for field in ("session_id", "owner"):
        for value in ("holdfast.cleanup", "holdfast."):
            with pytest.raises(InvalidInputError) as caught:
                await submitted(store, **{field: value})
            assert caught.value.field == field
        await submitted(store, **{field: "holdfast"})
    assert (await store.list(owner=None, count=True)).total == 2


async def test_neither_the_order_of_keys_nor_the_id_of_the_message_is_content(store: Any) -> None:
    first = await store.submit(
        "writer",
        ChatMessage.user("hello"),
        submit_key="k1",
        metadata={"a": 1, "b": {"c": 1, "d": 2}},
    )
    again = await store.submit(
        "writer",
        ChatMessage.user("hello"),
        submit_key="k1",
        metadata={"b": {"d": 2, "c": 1}, "a": 1},
    )
    assert again.id == first.id


async def test_a_submit_key_is_its_owners_own(store: Any) -> None:
    anas = await submitted(store, owner="ana", submit_key="k1")
    bens = await submitted(store, "something else", owner="ben", submit_key="k1")
    assert anas.id != bens.id


async def test_20_concurrent_submits_with_one_submit_key_make_one_task(store: Any) -> None:
    message = ChatMessage.user("hello")
    tasks = await asyncio.gather(
        *(store.submit("writer", message, submit_key="k1") for _ in range(20))
    )
    assert len({task.id for task in tasks}) == 1
    await check_invariants(store, submitted=1)


async def test_30_concurrent_submits_lose_no_task(store: Any) -> None:
    tasks = await asyncio.gather(
        *(submitted(store, f"task {at}", session_id="c1") for at in range(30))
    )
    assert sorted(await _ids(store, limit=100)) == sorted(task.id for task in tasks)
    await check_invariants(store, submitted=30)


async def test_an_unknown_task_is_none(store: Any) -> None:
    assert await store.get("no such task") is None
    assert await store.get("no such task", owner=None) is None
    for steer in (store.cancel, store.pause, store.resume, store.retry):
        with pytest.raises(NotFoundError):
            await steer("no such task")
    with pytest.raises(NotFoundError):
        await store.respond("no such task", ChatMessage.user("hello"))


async def test_get_returns_all_messages_and_artifacts_unless_limited(store: Any) -> None:
    task_id = await with_output(store)
    task = await store.get(task_id)
    assert texts(task.messages) == ["one", "two", "three"]
    assert [artifact.id for artifact in task.artifacts] == ["a1"]
    assert (await store.get(task_id, artifacts=False)).artifacts == []


async def test_a_messages_limit_of_zero_is_no_messages(store: Any) -> None:
    task_id = await with_output(store)
    assert (await store.get(task_id, messages_limit=0)).messages == []
    [listed] = (await store.list(messages_limit=0)).tasks
    assert listed.messages == []


async def test_messages_limit_takes_the_last_messages(store: Any) -> None:
    task_id = await with_output(store)
    for length, expected in ((1, ["three"]), (2, ["two", "three"]), (9, ["one", "two", "three"])):
        assert texts((await store.get(task_id, messages_limit=length)).messages) == expected
        [listed] = (await store.list(messages_limit=length)).tasks
        assert texts(listed.messages) == expected


async def test_one_tenant_never_sees_anothers_tasks(harness: Harness, store: Any) -> None:
    other = harness.store(CONTRACT, tenant="other")
    task = await submitted(store, submit_key="k1", session_id="c1")
    assert await other.get(task.id, owner=None) is None
    assert await _ids(other, owner=None) == []
    with pytest.raises(NotFoundError):
        await other.cancel(task.id, owner=None)
    theirs = await submitted(other, "another thing", submit_key="k1", session_id="c1")
    assert theirs.id != task.id
    assert await _ids(store, owner=None) == [task.id]


async def test_every_change_gives_a_higher_version(store: Any) -> None:
    task = await submitted(store)
    versions = [task.version]

    async def changed() -> None:
        versions.append((await found(store, task)).version)

    lease = (await claimed(store)).lease
    await changed()
    await store.append_message(lease, ChatMessage.assistant("hm"))
    await changed()
    await store.append_artifact(lease, "a1", [TextBlock("x")])
    await changed()
    await store.pause(task.id)
    await changed()
    await store.resume(task.id)
    await changed()
    await store.transition(lease, "input-required")
    await changed()
    await store.respond(task.id, ChatMessage.user("this"))
    await changed()
    await store.cancel(task.id)
    await changed()
    assert versions == sorted(set(versions))


async def test_text_and_metadata_come_back_exactly_however_odd(store: Any) -> None:
    for text in ("", "a\x00b", "שלום \U0001f980", "'; DROP TABLE tasks; --", "x" * 100_000):
        metadata = {text: [text, -0.0, 1e16, {"z": 1, "y": None}]}
        message = ChatMessage.user(text, metadata=metadata, name=text)
        task = await store.submit("writer", message, metadata=metadata)
        back = await store.get(task.id)
        assert back.messages == [message]
        assert repr(back.metadata) == repr(metadata)
        await store.cancel(task.id, note=text)
        assert (await store.get(task.id)).note == text


async def test_metadata_that_is_not_json_is_refused_by_its_path_and_nothing_is_written(
    store: Any,
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await submitted(store, metadata={"a": [1, float("nan")]}, submit_key="k1")
    assert caught.value.field == "metadata.a[1]"
    assert await _ids(store) == []
    assert (await store.list_contexts()).contexts == []
    await submitted(store, "the key is free", submit_key="k1")


async def test_a_negative_limit_and_a_max_attempts_of_zero_are_refused(store: Any) -> None:
    with pytest.raises(InvalidInputError):
        await store.list(limit=-1)
    with pytest.raises(InvalidInputError):
        await store.list(messages_limit=-1)
    with pytest.raises(InvalidInputError):
        await store.get("t", messages_limit=-1)
    with pytest.raises(InvalidInputError):
        await submitted(store, max_attempts=0)
    assert await _ids(store) == []


async def test_what_a_store_returns_is_the_callers_to_mutate(store: Any) -> None:
    task = await submitted(store, metadata={"a": {"b": 1}})
    for _ in range(2):
        back = await store.get(task.id)
        assert back.metadata == {"a": {"b": 1}}
        assert texts(back.messages) == ["Tides of Brest?"]
        back.metadata["a"]["b"] = 2
        back.messages[0].content.append(TextBlock("more"))
        back.messages.clear()
        [listed] = (await store.list(messages_limit=None)).tasks
        assert listed.metadata == {"a": {"b": 1}}
        listed.metadata.clear()
        listed.messages.clear()


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: Any) -> None:
    metadata, message = {"a": [1]}, ChatMessage.user([TextBlock("one")])
    task = await store.submit("writer", message, metadata=metadata)
    metadata["a"].append(2)
    message.content.append(TextBlock("two"))
    back = await store.get(task.id)
    assert back.metadata == {"a": [1]}
    assert texts(back.messages) == ["one"]


async def test_a_task_is_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    task_id = await with_output(store)
    before = await found(store, task_id)
    await harness.elapse(LONG)
    await harness.reopen()
    assert await found(harness.store(CONTRACT), task_id) == before
