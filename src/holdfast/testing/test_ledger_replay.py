"""The promises of ``AuditLedger`` about replay."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.replay import replay
from holdfast.values.tasks.reports import StatusReport

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _agrees(store: Any, task_id: str) -> int:
    """Compare the task after each of its events with its first events, folded."""
    task = await store.get(task_id)
    events = await store.events(task_id)
    for until in range(1, len(events) + 1):
        assert await store.replay(task_id, until) == replay(task, events[:until]), until
    return len(events)


async def test_replay_agrees_with_the_timeline_at_every_event(store: Any, harness: Harness) -> None:
    task = await store.submit("writer", ChatMessage.user("go"), max_attempts=9, metadata={"a": 1})
    await store.pause(task.id, note="wait")
    await store.resume(task.id)
    for attempt in range(3):
        [claimed] = await store.claim("w1", lease_seconds=10)
        lease = claimed.lease
        await store.append_artifact(lease, "a1", [TextBlock(f"one {attempt}")])
        await store.append_artifact(lease, "a2", [TextBlock("x")], append=True)
        await store.append_message(lease, ChatMessage.assistant(f"attempt {attempt}"))
        await store.append_artifact(lease, "a1", [TextBlock("two")], append=True)
        if attempt == 1:
            await store.record_step(lease, StepKey("fetch"), 1)
        await harness.elapse(11)
        await store.recover_expired()
    [claimed] = await store.claim("w2")
    lease = claimed.lease
    await store.pause(task.id)
    await store.resume(task.id)
    await store.pause(task.id, note="again")
    await store.append_message(lease, ChatMessage.assistant("hm"))
    asks = ChatMessage.assistant("which?")
    await store.transition(lease, "input-required", message=asks, ask=StepKey("q", kind="ask"))
    await store.respond(task.id, ChatMessage.user("this"))
    await store.resume(task.id)
    [claimed] = await store.claim("w3")
    await store.append_artifact(claimed.lease, "a1", [TextBlock("end")], last_chunk=True)
    await store.cancel(task.id, note="enough")
    await store.append_message(claimed.lease, ChatMessage.assistant("stopping"))
    await store.transition(claimed.lease, "completed", message=ChatMessage.assistant("bye"))
    assert await _agrees(store, task.id) == 40
    await store.adopt("t1", agent="writer")
    reports = [
        StatusReport("working"),
        ChatMessage.assistant("theirs"),
        StatusReport("input-required", message=ChatMessage.assistant("which?")),
        StatusReport("working"),
        StatusReport("completed"),
    ]
    await store.record("t1", reports[:1], expected_version=1)
    await store.cancel("t1")
    await store.record("t1", reports[1:], expected_version=3)
    assert await _agrees(store, "t1") == 8


async def test_replay_gives_the_last_messages_and_artifacts_only_on_request(store: Any) -> None:
    task = await store.submit("writer", ChatMessage.user("one"))
    [claimed] = await store.claim("w1")
    await store.append_artifact(claimed.lease, "a1", [TextBlock("x")])
    for text in ("two", "three"):
        await store.append_message(claimed.lease, ChatMessage.assistant(text))
    last = (await store.get(task.id)).version
    whole = await store.replay(task.id, last)
    assert [one.text for one in whole.messages] == ["one", "two", "three"]
    assert len(whole.artifacts) == 1
    some = await store.replay(task.id, last - 1, messages_limit=1, artifacts=False)
    assert [one.text for one in some.messages] == ["two"]
    assert some.artifacts == []
    assert (await store.replay(task.id, last, messages_limit=0)).messages == []
    assert len((await store.replay(task.id, last, messages_limit=99)).messages) == 3
