"""The promises of ``EpisodicMemory``: sessions listed with the states that their metadata names.

An engine whose events and states are in different stores refuses it.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.identity import ALL_AGENTS, AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")


async def _lists_states(store: Any) -> bool:
    try:
        await store.list_sessions_with_states(ANA)
    except NotSupportedError:
        return False
    return True


async def _start(store: Any, session: str, *states: Any, **more: Any) -> None:
    await store.start_session(ANA, session, metadata={"states": list(states), **more})


async def test_sessions_are_listed_with_the_states_that_their_metadata_names_or_it_is_refused(
    harness: Harness, store: Any
) -> None:
    if not await _lists_states(store):
        return
    states = harness.store("short_term")
    await _start(store, "s1", "s1", "user", mail=True)
    await _start(store, "s2", "s2", "user", "not there")
    await states.set_state("s1", {"n": [1, {"a": None}], "k\x00": "v"})
    await states.set_state("user", {"of": "both"}, ttl_seconds=60)
    await states.set_state("unnamed", {"of": "nobody"})
    page, found = await store.list_sessions_with_states(ANA)
    assert page == await store.list_sessions(ANA)
    assert found == dict(zip(["s1", "user"], await states.get_many(["s1", "user"]), strict=True))
    page, found = await store.list_sessions_with_states(ALL_AGENTS, where={"mail": True})
    assert ([one.id for one in page], sorted(found)) == (["s1"], ["s1", "user"])
    await store.start_session(ANA, "s1", metadata={"other": ["user"]})
    page, found = await store.list_sessions_with_states(ANA, key="other")
    assert (len(page), list(found)) == (2, ["user"])
    await harness.elapse(61)
    await states.clear("s2")
    assert (await store.list_sessions_with_states(ANA, key="other"))[1] == {}
    assert await store.list_sessions_with_states(AgentId("writer", "ben")) == ([], {})
    other = harness.store(CONTRACT, tenant="other")
    await _start(other, "s9", "s1")
    assert (await other.list_sessions_with_states(ANA))[1] == {}
    for bad in ("", "k\x00"):
        with pytest.raises(InvalidInputError, match="key"):
            await store.list_sessions_with_states(ANA, key=bad)


async def test_a_session_that_names_no_state_is_listed_without_one(
    harness: Harness, store: Any
) -> None:
    if not await _lists_states(store):
        return
    await harness.store("short_term").set_state("s1", {"n": 1})
    odd: tuple[dict[str, Any], ...] = (
        {},
        {"states": "s1"},
        {"states": {"s1": 1}},
        {"states": None},
        {"states": [["s1"]]},
    )
    broken: tuple[dict[str, Any], ...] = (
        {"states": ["a\x00", None, 1, "\\u0000", "x" * 600]},
        {"states": []},
        {"k\x00": 1},
    )
    for at, metadata in enumerate((*odd, *broken)):
        await store.start_session(ANA, f"of {at}", metadata=metadata)
    page, found = await store.list_sessions_with_states(ANA)
    assert (len(page), found) == (len(odd) + len(broken), {})
    await _start(store, "with one", "a\x00", "s1")
    assert list((await store.list_sessions_with_states(ANA))[1]) == ["s1"]


async def test_a_listing_with_states_has_only_states_of_the_owner_who_asks(
    harness: Harness, store: Any
) -> None:
    if not await _lists_states(store):
        return
    states = harness.store("short_term")
    scopes = {one: OwnerScope(one) for one in ("ana", "bob")}
    scopes["cyd"] = OwnerScope("cyd", memory="shared")
    scopes["nobody"] = OwnerScope("", is_confined=True)
    for name, scope in scopes.items():
        await states.for_owner(scope).set_state("s", {"of": name})
        stored = [f"holdfast.owner:3:{one}:s" for one in ("ana", "bob", "cyd")]
        await _start(store.for_owner(scope), f"of {name}", "s", *stored)
    for name, scope in scopes.items():
        for agent in (ANA, ALL_AGENTS):
            page, found = await store.for_owner(scope).list_sessions_with_states(agent)
            assert [one.id for one in page] == [f"of {name}"], (name, agent)
            assert {key: one.state for key, one in found.items()} == {"s": {"of": name}}


async def test_a_listing_with_states_is_in_pages_and_each_page_has_its_states(
    harness: Harness, store: Any
) -> None:
    if not await _lists_states(store):
        return
    states = harness.store("short_term")
    for at in range(5):
        await _start(store, f"s{at}", f"s{at}")
        await states.set_state(f"s{at}", {"at": at})
    ids: list[str] = []
    cursor = None
    for size in (2, 2, 1):
        page, found = await store.list_sessions_with_states(ANA, limit=2, cursor=cursor)
        assert sorted(found) == sorted(one.id for one in page)
        assert len(page) == size
        ids += [one.id for one in page]
        cursor = page[-1].cursor
    assert ids == [one.id for one in await store.list_sessions(ANA)]
    with pytest.raises(InvalidInputError, match="limit"):
        await store.list_sessions_with_states(ANA, limit=-1)
