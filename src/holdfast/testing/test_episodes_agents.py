"""The promises of ``EpisodicMemory``: the list of agents."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _say(store: Any, *agents: str, session: str = "s1") -> None:
    await store.append(
        [Event(AgentId.parse(one), session, "note", {"at": at}) for at, one in enumerate(agents)]
    )


async def _names(store: Any) -> list[str]:
    """All names, read in pages of two."""
    seen: list[AgentId] = []
    page = await store.list_agents(limit=2)
    while page:
        seen += page
        page = await store.list_agents(limit=2, after=page[-1])
    return [str(one) for one in seen]


async def test_agents_that_have_events_are_listed_by_code_points(
    harness: Harness, store: Any
) -> None:
    await _say(store, "writer/ana", "Zed", "writer/ana", "planner")
    await store.start_session("silent", "s2")
    await _say(harness.store(CONTRACT, tenant="acme"), "theirs")
    assert await _names(store) == ["Zed", "planner", "writer/ana"]
    await store.clear("s1", agent_id="planner")
    assert await _names(store) == ["Zed", "writer/ana"]


async def test_a_limit_and_after_select_a_page_of_the_agents(store: Any) -> None:
    names = ["a", "é", "holdfast", "z", "\U0010ffff"]
    await _say(store, *names)
    assert await _names(store) == sorted(names)
    assert await store.list_agents(limit=0) == []
    assert [str(one) for one in await store.list_agents(after="i")] == ["z", "é", names[-1]]
    with pytest.raises(InvalidInputError) as refused:
        await store.list_agents(limit=-1)
    assert refused.value.field == "limit"


async def test_listed_agents_are_those_of_the_owner_who_asks_or_those_that_nobody_owns(
    store: Any,
) -> None:
    nobody = store.for_owner(OwnerScope(""))
    ana, bob = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    await _say(nobody, "a", "z")
    await _say(ana, "m", "n", "o")
    await _say(bob, "m")
    assert await _names(nobody) == ["a", "z"]
    assert await _names(ana) == ["m", "n", "o"]
    assert await _names(bob) == ["m"]
    with pytest.raises(InvalidInputError) as refused:
        await ana.list_agents(after="holdfast.owner:3:bob:a")
    assert refused.value.field == "after"
