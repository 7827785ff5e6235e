"""A view that is confined to its tenant."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast import AgentId, ChatMessage
from holdfast.errors import NotSupportedError

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")


def _beyond(state: holdfast.State) -> dict[str, Any]:
    return {
        "for_tenant": lambda: state.for_tenant("globex"),
        "ops": lambda: state.ops,
        "keys": lambda: state.keys,
    }


async def test_a_confined_view_has_its_tenant_and_nothing_beyond_it() -> None:
    async with holdfast.open("memory:") as state:
        acme = state.for_tenant("acme")
        tools = acme.confined()
        await tools.history.append(ANA, ChatMessage.user("hello"), session_id="s1")
        assert len(await acme.history.get_messages(ANA, session_id="s1")) == 1
        for view in (tools, tools.confined(), tools.for_owner("ana"), tools.for_owner("")):
            for name, call in _beyond(view).items():
                with pytest.raises(NotSupportedError, match=f"{name} for one tenant"):
                    call()
            with pytest.raises(NotSupportedError, match="erase for one tenant"):
                await view.erase(subject="ana")
        await tools.aclose()
        # The connections are those of the state that was opened.
        assert len(await acme.history.get_messages(ANA, session_id="s1")) == 1


async def test_a_confined_view_of_an_owner_stays_the_owners() -> None:
    async with holdfast.open("memory:") as state:
        ana = state.for_owner("ana").confined()
        assert ana.owner == "ana"
        await ana.history.append(ANA, ChatMessage.user("hello"), session_id="s1")
        assert await state.confined().history.get_messages(ANA, session_id="s1") == []
        with pytest.raises(NotSupportedError):
            ana.for_owner("bob")
