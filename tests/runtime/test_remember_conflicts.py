"""Message ids that clients have chosen so that they collide do not keep back other messages."""

from __future__ import annotations

import hashlib

import pytest

from holdfast import App, ChatMessage, State, TaskContext

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_message_whose_other_id_is_in_use_too_keeps_nothing_back(wired: State) -> None:
    app = App("writer")

    @app.handler
    async def work(task: TaskContext) -> str:
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
