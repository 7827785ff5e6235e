"""The promises of ``EpisodicMemory``: events and patches of states in one step.

An engine whose events and states are in different stores refuses patches, and then writes nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.errors import (
    ConflictError,
    InvalidInputError,
    NotSupportedError,
    VersionConflictError,
)
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId
from holdfast.values.states import StatePatch

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")


def _event(note: str, *, session: str = "s1", **more: Any) -> Event:
    return Event(ANA, session, "observation", {"note": note}, **more)


async def _notes(store: Any) -> list[str]:
    return [one.payload["note"] for one in await store.recent(ALL_AGENTS)]


async def _patches(harness: Harness, store: Any) -> bool:
    """Whether the engine writes both in one step; if it refuses, nothing was written."""
    try:
        await store.append([_event("probe", session="p")], patches=[StatePatch("p", {"a": 1})])
    except NotSupportedError:
        assert await store.recent(ALL_AGENTS) == []
        assert await harness.store("short_term").get_state("p") == {}
        return False
    await store.delete_session("p")
    return True


async def test_patches_change_states_in_the_same_step_as_the_events_or_are_refused(
    harness: Harness, store: Any
) -> None:
    if not await _patches(harness, store):
        return
    states = harness.store("short_term")
    version = await states.set_state("s1", {"kept": 0, "dropped": 1})
    patches = [
        StatePatch("s1", {"step": [1, {"a": None}]}, ["dropped"], version),
        StatePatch("user:ana", {"k\x00": "v"}, expected_version=0, ttl_seconds=60),
    ]
    vectors = [[1.0, 0.0], [0.0, 1.0]]
    sent = [_event("a"), _event("b", session="s2")]
    stored = await store.append(sent, embeddings=vectors, patches=patches)
    assert [(one.session_id, one.seq) for one in stored] == [("s1", 1), ("s2", 1)]
    assert await _notes(store) == ["a", "b"]
    one, user = await states.get_many(["s1", "user:ana"])
    assert one.state == {"kept": 0, "step": [1, {"a": None}]}
    assert one.version > version
    assert stored.versions == [one.version, user.version]
    assert user.state == {"k\x00": "v"}
    assert user.expires_at is not None
    await harness.elapse(61)
    assert await states.get_state("user:ana") == {}
    other = harness.store("short_term", tenant="other")
    assert await other.get_state("s1") == {}
    [hit] = await store.recall(ANA, [1.0, 0.0], limit=1)
    assert hit.event.payload == {"note": "a"}


async def test_a_patch_of_another_version_is_a_version_conflict_and_no_event_is_stored(
    harness: Harness, store: Any
) -> None:
    if not await _patches(harness, store):
        return
    states = harness.store("short_term")
    version = await states.set_state("s2", {"a": 1})
    patches = [StatePatch("s1", {"b": 1}), StatePatch("s2", {"b": 1}, expected_version=version + 1)]
    with pytest.raises(VersionConflictError) as caught:
        await store.append([_event("a")], patches=patches)
    assert (caught.value.kind, caught.value.key, caught.value.actual) == ("state", "s2", version)
    assert await _notes(store) == []
    assert [one.state for one in await states.get_many(["s1", "s2"])] == [{}, {"a": 1}]
    writers = (
        store.append([_event(f"{n}")], patches=[StatePatch("s2", {"n": n}, (), version)])
        for n in range(10)
    )
    outcomes = await asyncio.gather(*writers, return_exceptions=True)
    [winner] = [n for n, one in enumerate(outcomes) if not isinstance(one, VersionConflictError)]
    assert await _notes(store) == [f"{winner}"]
    assert await states.get_state("s2") == {"a": 1, "n": winner}


async def test_a_conflict_of_an_event_leaves_all_states_as_they_were(
    harness: Harness, store: Any
) -> None:
    if not await _patches(harness, store):
        return
    await store.append([_event("a", id="e1")])
    with pytest.raises(ConflictError) as caught:
        await store.append(
            [_event("new"), _event("another", id="e1")], patches=[StatePatch("s1", {"a": 1})]
        )
    assert (caught.value.kind, caught.value.key) == ("event", "e1")
    assert await _notes(store) == ["a"]
    assert await harness.store("short_term").get_state("s1") == {}


async def test_a_retry_whose_events_are_all_stored_patches_nothing_again(
    harness: Harness, store: Any
) -> None:
    if not await _patches(harness, store):
        return
    states = harness.store("short_term")
    event, patch = _event("a"), StatePatch("s1", {"step": 1}, expected_version=0)
    first = await store.append([event], patches=[patch])
    seen = await states.snapshot("s1")
    again = await store.append([event], patches=[patch])
    assert (again, again.versions) == (first, [])
    assert first.versions == [seen.version]
    assert await states.snapshot("s1") == seen
    await asyncio.gather(
        *(
            store.append([_event("b", id="b")], patches=[StatePatch("s2", {}, (), 0)])
            for _ in "1234"
        )
    )
    assert await _notes(store) == ["a", "b"]
    await store.append([event, _event("c")], patches=[StatePatch("s1", {"step": 2})])
    assert await states.get_state("s1") == {"step": 2}


async def test_patches_without_events_are_written_too(harness: Harness, store: Any) -> None:
    if not await _patches(harness, store):
        return
    states = harness.store("short_term")
    patches = [StatePatch(f"s{n}", {"n": n}) for n in range(3)]
    done = await store.append([], patches=patches)
    found = await states.get_many(["s0", "s1", "s2"])
    assert (done, done.versions) == ([], [one.version for one in found])
    assert [one.state for one in found] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert await store.append([], patches=()) == []


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (StatePatch("", {}), "patches[0].session_id"),
        (StatePatch("s1", {"a": float("nan")}), "patches[0].patch"),
        (StatePatch("s1", {"a": 1}, ["a"]), "patches[0].delete_keys"),
        (StatePatch("s1", {}, "a"), "patches[0].delete_keys"),
        (StatePatch("s1", {}, (), -1), "patches[0].expected_version"),
        (StatePatch("s1", {}, (), None, 0), "patches[0].ttl_seconds"),
        (StatePatch("s1", {"a": "x" * (2 << 20)}), "patches[0].patch"),
        ({"session_id": "s1"}, "patches[0]"),
    ],
)
async def test_a_bad_patch_is_an_error_that_names_it_and_nothing_is_written(
    harness: Harness, store: Any, bad: Any, field: str
) -> None:
    for patches in ([bad], [bad, StatePatch("s9", {"a": 1})]):
        with pytest.raises(InvalidInputError) as caught:
            await store.append([_event("a")], patches=patches)
        assert caught.value.field.startswith(field)
    twice = [StatePatch("s1", {"a": 1}), StatePatch("s1", {"b": 1})]
    with pytest.raises(InvalidInputError) as caught:
        await store.append([_event("a")], patches=twice)
    assert caught.value.field == "patches[1].session_id"
    for many in ("s1", [StatePatch(f"s{n}") for n in range(1001)]):
        with pytest.raises(InvalidInputError) as caught:
            await store.append([_event("a")], patches=many)
        assert caught.value.field == "patches"
    assert await store.recent(ALL_AGENTS) == []
    assert await harness.store("short_term").get_state("s9") == {}
