"""Message ids that clients have chosen so that they collide do not keep back other messages."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from holdfast import App, ChatMessage, State, TaskContext, TaskState
from holdfast.contracts.history import History
from holdfast.values.identity import Agent

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_message_whose_other_id_is_in_use_too_keeps_nothing_back(wired: State) -> None:
    app = App("writer")

    @app.handler
    async def work(_task: TaskContext) -> str:
        return "done"

    eves, bobs = wired.for_owner("eve"), wired.for_owner("bob")
    await eves.tasks.submit("writer", ChatMessage.user("a", id="m1"), session_id="c1")
    second = await eves.tasks.submit("writer", ChatMessage.user("b", id="m1"), session_id="c1")
    # The id under which the second message is copied, as its client can compute it.
    taken = f"{second.id}:{hashlib.sha256(b'm1').hexdigest()[:32]}"
    await eves.history.append("writer", ChatMessage.user("c", id=taken), session_id="c1")
    await bobs.tasks.submit("writer", ChatMessage.user("tide"), session_id="c1")
    await app.run_until_idle(wired, concurrency=5)
    found = await bobs.history.get_messages("writer", session_id="c1")
    assert [one.text for one in found] == ["tide", "done"]
    found = await eves.history.get_messages("writer", session_id="c1")
    assert sorted(one.text for one in found) == ["a", "c", "done", "done"]


async def test_only_the_messages_of_the_task_with_a_conflict_are_copied_one_by_one(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[str] = []
    append = History.append

    async def noted(history: History, agent: Agent, message: ChatMessage, **where: Any) -> None:
        alone.append(message.text)
        await append(history, agent, message, **where)

    for at in range(12):
        task = await state.tasks.submit("writer", ChatMessage.user(f"tide {at}"))
        claimed = await state.tasks.claim("w1", agents=["writer"], limit=1)
        for number in range(3):
            said = ChatMessage.assistant(f"more {at} {number}")
            await state.tasks.append_message(claimed[0].lease, said)
        await state.tasks.transition(claimed[0].lease, TaskState.COMPLETED)
        assert claimed[0].task.id == task.id
    for text in ("a", "b"):
        await state.tasks.submit("writer", ChatMessage.user(text, id="m1"), session_id="c1")
    monkeypatch.setattr(History, "append", noted)
    app = App("writer")

    @app.handler
    async def work(_task: TaskContext) -> None:
        pass

    await app.run_until_idle(state, concurrency=5)
    # Twice: as the tasks begin, and as they rest.
    assert set(alone) <= {"a", "b"}
    assert await state.history.count_messages("writer", session_id="c1") == 2
