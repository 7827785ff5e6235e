"""The promises of ``TranscriptLedger``."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import claimed, leased, submitted
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENTS = ["writer"]


def _texts(found: list[Any]) -> list[str]:
    return [one.message.text for one in found]


async def _marked(store: Any) -> None:
    """Mark all that rests."""
    found = await store.resting_messages(agents=AGENTS)
    await store.mark_copied([(one.task_id, one.version) for one in found])


async def test_the_messages_of_a_task_that_rests_are_to_be_copied_until_it_is_marked(
    store: Any,
) -> None:
    lease = await leased(store, text="one", session_id="c1", owner="ana")
    await store.append_message(lease, ChatMessage.assistant("two"))
    await store.transition(lease, "completed", message=ChatMessage.assistant("three"))
    found = await store.resting_messages(agents=AGENTS)
    assert _texts(found) == ["one", "two", "three"]
    assert {(one.task_id, one.owner, one.session_id) for one in found} == {
        (lease.task_id, "ana", "c1")
    }
    task = await store.get(lease.task_id, owner="ana")
    assert [one.message for one in found] == task.messages
    assert {one.version for one in found} == {task.version}
    await _marked(store)
    assert await store.resting_messages(agents=AGENTS) == []


async def test_the_messages_of_a_task_at_work_are_not_to_be_copied_as_resting(store: Any) -> None:
    await submitted(store, "queued")
    assert await store.resting_messages(agents=AGENTS) == []
    await claimed(store)
    assert await store.resting_messages(agents=AGENTS) == []


async def test_a_task_that_goes_on_after_it_was_marked_is_to_be_copied_again(store: Any) -> None:
    lease = await leased(store, text="one")
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    await _marked(store)
    assert await store.resting_messages(agents=AGENTS) == []
    await store.respond(lease.task_id, ChatMessage.user("that"))
    await store.cancel(lease.task_id)
    assert _texts(await store.resting_messages(agents=AGENTS)) == ["one", "which?", "that"]


async def test_a_mark_for_an_older_version_of_a_task_has_no_effect(store: Any) -> None:
    lease = await leased(store, text="one")
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    [older, _] = await store.resting_messages(agents=AGENTS)
    await store.respond(lease.task_id, ChatMessage.user("that"))
    await store.cancel(lease.task_id)
    assert await store.mark_copied([(older.task_id, older.version)]) == {lease.task_id}
    assert _texts(await store.resting_messages(agents=AGENTS)) == ["one", "which?", "that"]


async def test_messages_to_be_copied_are_filtered_by_agent(store: Any) -> None:
    task = await submitted(store, "one")
    await store.cancel(task.id)
    assert await store.resting_messages(agents=["another"]) == []
    assert await store.context_messages(task.session_id, agents=["another"]) == []
    assert _texts(await store.resting_messages(agents=["another", "writer"])) == ["one"]
    assert await store.resting_messages(agents=AGENTS, limit=0) == []


async def test_the_messages_of_a_context_to_be_copied_come_in_the_order_they_were_said(
    store: Any,
) -> None:
    lease = await leased(store, text="one", session_id="c1")
    await submitted(store, "two", session_id="c1")
    await store.append_message(lease, ChatMessage.assistant("three"))
    await submitted(store, "elsewhere", session_id="c2")
    found = await store.context_messages("c1", agents=AGENTS)
    assert _texts(found) == ["one", "two", "three"]
    assert _texts(await store.context_messages("c1", agents=AGENTS, limit=2)) == ["two", "three"]
    assert await store.context_messages("c1", agents=AGENTS, limit=0) == []


async def test_the_messages_of_a_context_leave_out_tasks_that_are_marked(store: Any) -> None:
    first = await submitted(store, "one", session_id="c1")
    await store.cancel(first.id)
    await _marked(store)
    await submitted(store, "two", session_id="c1")
    assert _texts(await store.context_messages("c1", agents=AGENTS)) == ["two"]


async def test_the_messages_of_a_context_are_those_of_one_owner(store: Any) -> None:
    await submitted(store, "of ana", session_id="c1", owner="ana")
    await submitted(store, "of nobody", session_id="c1")
    assert _texts(await store.context_messages("c1", agents=AGENTS, owner="ana")) == ["of ana"]
    assert _texts(await store.context_messages("c1", agents=AGENTS)) == ["of nobody"]
    assert await store.context_messages("c1", agents=AGENTS, owner="bob") == []


async def test_messages_of_several_contexts_are_those_that_each_of_them_has(store: Any) -> None:
    await submitted(store, "one", session_id="c1")
    await submitted(store, "of ana", session_id="c1", owner="ana")
    await submitted(store, "elsewhere", session_id="c2")
    await submitted(store, "two", session_id="c1")
    both = [("c1", None), ("c1", "ana"), ("unknown", None), ("c1", None)]
    found = await store.messages_of_contexts(both, agents=AGENTS)
    assert _texts([one for one in found if not one.owner]) == ["one", "two"]
    assert _texts([one for one in found if one.owner]) == ["of ana"]
    assert {one.session_id for one in found} == {"c1"}
    last = await store.messages_of_contexts(both, agents=AGENTS, limit=1)
    assert sorted(_texts(last)) == ["of ana", "two"]
    assert await store.messages_of_contexts([], agents=AGENTS) == []
    with pytest.raises(InvalidInputError, match=r"contexts\[1\]"):
        await store.messages_of_contexts([("c1", None), "c2"], agents=AGENTS)


async def test_marking_returns_which_tasks_are_still_there(store: Any) -> None:
    kept, gone = await submitted(store, session_id="c1"), await submitted(store, session_id="c2")
    await store.clear_context("c2")
    both = [(kept.id, kept.version), (gone.id, gone.version)]
    assert await store.mark_copied(both) == {kept.id}
    assert await store.mark_copied([]) == set()


async def test_a_marked_task_stays_marked_after_a_reopen(harness: Harness, store: Any) -> None:
    task = await submitted(store, "one")
    await store.cancel(task.id)
    await _marked(store)
    await harness.reopen()
    assert await harness.store("tasks").resting_messages(agents=AGENTS) == []
