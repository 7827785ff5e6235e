"""The promises of ``AdoptedLedger`` about tasks that are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import LONG, adopted, found, leased, recorded, submitted, texts
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import LeaseLostError, NotFoundError
from holdfast.values.tasks.events import ArtifactChunk
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.reports import StatusReport

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_delete_removes_a_task_with_all_it_holds(store: Any) -> None:
    await adopted(
        store, ChatMessage.user("hello"), ArtifactChunk("a1", [TextBlock("x")]), session_id="c1"
    )
    mine = await submitted(store, session_id="c1", submit_key="k1")
    for name in ("t1", mine.id):
        await store.append_feedback(name, "good")
        await store.upsert_push_config(name, PushConfig("p1", "https://example.org"))
    await recorded(store, StatusReport("working"))
    for name in ("t1", mine.id):
        followed = store.follow(name)
        assert await anext(followed)
        assert await store.delete(name)
        assert [event async for event in followed if event.seq > 9] == []
        assert await store.get(name) is None
        assert (await store.events(name), await store.list_feedback(name)) == ([], [])
        assert await store.list_push_configs(name) == []
        assert await store.list_outbox(name) == []
        assert await store.artifacts(name) == []
    assert (await store.claim_outbox(), await store.claim("w1")) == ([], [])
    assert await store.get_context("c1") is None
    assert (await store.list_contexts()).contexts == []
    assert (await submitted(store, submit_key="k1")).id != mine.id


async def test_delete_of_an_unknown_task_is_false(store: Any) -> None:
    assert not await store.delete("t1")
    await adopted(store)
    assert await store.delete("t1")
    assert not await store.delete("t1")


async def test_another_owners_task_is_not_deleted(store: Any) -> None:
    task = await adopted(store, owner="ana")
    assert not await store.delete("t1", owner="bo")
    assert not await store.delete("t1", owner="")
    assert await found(store, "t1") == task
    assert await store.delete("t1", owner="ana")


async def test_after_delete_nothing_brings_a_task_back(harness: Harness, store: Any) -> None:
    task = await adopted(store, StatusReport("working"))
    lease = await leased(store)
    for name in ("t1", lease.task_id):
        assert await store.delete(name)
    with pytest.raises(NotFoundError):
        await store.record("t1", [StatusReport("failed")], expected_version=task.version)
    with pytest.raises(NotFoundError):
        await store.record("t1", [StatusReport("canceled")])
    with pytest.raises(NotFoundError):
        await store.upsert_push_config("t1", PushConfig("p1", "https://example.org"))
    with pytest.raises(NotFoundError):
        await store.append_feedback("t1", "good")
    with pytest.raises(LeaseLostError):
        await store.append_message(lease, ChatMessage.assistant("late"))
    assert await store.complete_many([lease]) == [None]
    await harness.elapse(LONG)
    assert await store.recover_expired() == []
    assert (await store.list()).tasks == []


async def test_a_deleted_task_leaves_the_others_of_its_context(store: Any) -> None:
    await adopted(store, ChatMessage.user("one"), session_id="c1")
    await adopted(store, ChatMessage.user("two"), task_id="t2", session_id="c1")
    assert await store.delete("t1")
    assert texts((await store.get_context("c1")).messages) == ["two"]
    assert [one.tasks for one in (await store.list_contexts()).contexts] == [1]
    assert await store.clear_context("c1") == 1


async def test_after_delete_the_marks_of_a_task_are_due(store: Any) -> None:
    lease = await leased(store)
    refs = [f"b{number}" for number in reversed(range(9))]
    for ref in refs:
        await store.add_cleanup(lease, "blob", ref)
    await store.keep_files(lease.task_id, ["f1"])
    assert await store.delete(lease.task_id)
    marks = [(mark.kind, mark.ref) for mark in await store.list_cleanup(lease.task_id)]
    assert marks == [("artifact", "f1"), *(("blob", ref) for ref in sorted(refs))]
