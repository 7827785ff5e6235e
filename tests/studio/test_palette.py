"""What the palette finds while somebody types."""

from __future__ import annotations

import pytest

from holdfast import Event
from holdfast.values.content import ChatMessage
from holdfast.values.identity import AgentId
from holdfast.wiring.state import State
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _found(visitor: Visitor, words: str) -> list[tuple[str, str]]:
    response = await visitor.get(f"/studio/palette?q={words}")
    assert response.status_code == 200
    return [(row["kind"], row["text"]) for row in response.json()]


async def test_agents_sessions_and_tasks_are_found_by_parts_of_their_names(state: State) -> None:
    await state.episodes.start_session("harbour-master", "tide-week")
    await state.tasks.submit("harbour-watch", ChatMessage.user("Look out"))
    agent = AgentId.parse("harbour-master")
    await state.episodes.append([Event(agent, "tide-week", "note", {"text": "high water"})])
    made = await state.tasks.submit("writer", ChatMessage.user("Write the tide table"))
    async with Visitor(state) as visitor:
        agents = {text for kind, text in await _found(visitor, "HARBOUR") if kind == "Agent"}
        assert agents == {"harbour-master", "harbour-watch"}
        assert await _found(visitor, "tide") == [
            ("Session", "tide-week"),
            ("Task", "Write the tide table"),
        ]
        assert await _found(visitor, made.id[:-2]) == [("Task", "Write the tide table")]
        assert await _found(visitor, "") == []
        assert await _found(visitor, "nothing") == []


async def test_an_owner_finds_only_what_is_theirs(state: State) -> None:
    bob = state.for_owner("bob")
    await bob.episodes.start_session("harbour-master", "tide-week")
    await bob.tasks.submit("writer", ChatMessage.user("Write the tide table"))
    async with Visitor.owner(state, "ana") as visitor:
        assert await _found(visitor, "tide") == await _found(visitor, "harbour") == []
    async with Visitor.owner(state, "bob") as visitor:
        assert len(await _found(visitor, "tide")) == 2
