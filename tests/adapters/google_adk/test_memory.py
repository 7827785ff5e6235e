"""The memory service: memories of each user, found by words, and deleted for good."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from holdfast import ALL_AGENTS, State
from holdfast.adapters.google_adk import HoldfastMemoryService
from holdfast.errors import InvalidInputError
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
APP = "tides"


def _content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def _event(text: str, **fields: Any) -> Event:
    return Event(author="user", invocation_id="i1", content=_content(text), **fields)


async def _search(state: State, query: str, user: str = "ana", app: str = APP) -> list[str]:
    found = await HoldfastMemoryService(state).search_memory(
        app_name=app, user_id=user, query=query
    )
    return [one.content.parts[0].text for one in found.memories]


async def _add(state: State, *events: Event, user: str = "ana", app: str = APP) -> None:
    await HoldfastMemoryService(state).add_events_to_memory(
        app_name=app, user_id=user, events=events
    )


async def test_a_search_finds_the_nearest_of_what_was_said(state: State) -> None:
    memory = HoldfastMemoryService(state)
    call = types.Part(function_call=types.FunctionCall(name="harbour"))
    events = [
        _event("the harbour of Riga is deep"),
        _event("the harbour freezes", timestamp=86_400.0),
        Event(author="pilot", content=types.Content(role="model", parts=[call])),
        Event(author="pilot"),
    ]
    session = Session(app_name=APP, user_id="ana", id="s1", events=events)
    for _ in range(2):
        await memory.add_session_to_memory(session)
    assert await _search(state, "Riga harbour") == [
        *("the harbour of Riga is deep", "the harbour freezes")
    ]
    assert await _search(state, "harbours") == await _search(state, "harbour")
    assert await _search(state, "mountain") == await _search(state, " ") == []
    [found] = (await memory.search_memory(app_name=APP, user_id="ana", query="freezes")).memories
    assert found == MemoryEntry(
        id=events[1].id,
        author="user",
        timestamp="1970-01-02T00:00:00+00:00",
        content=_content("the harbour freezes"),
    )


async def test_at_most_ten_memories_are_found_or_as_many_as_wanted(state: State) -> None:
    await _add(state, *(_event(f"harbour {n}") for n in range(12)))
    assert len(await _search(state, "harbour")) == 10
    three = HoldfastMemoryService(state, limit=3)
    found = await three.search_memory(app_name=APP, user_id="ana", query="harbour")
    assert len(found.memories) == 3


async def test_memories_are_added_as_they_are(state: State) -> None:
    memory = HoldfastMemoryService(state)
    picture = types.Part(inline_data=types.Blob(data=b"\xff\x00", mime_type="image/png"))
    content = types.Content(role="user", parts=[types.Part(text="harbour"), picture])
    entry = MemoryEntry(
        id="m\n1", content=content, author="ana", timestamp="a while ago", custom_metadata={"a": 1}
    )
    bare = MemoryEntry(content=_content("lighthouse"))
    await memory.add_memory(
        app_name=APP, user_id="ana", memories=[entry, bare], custom_metadata={"a": 0, "b": 2}
    )
    [found] = (await memory.search_memory(app_name=APP, user_id="ana", query="harbour")).memories
    assert found == entry.model_copy(update={"custom_metadata": {"a": 1, "b": 2}})
    [other] = (await memory.search_memory(app_name=APP, user_id="ana", query="lighthouse")).memories
    assert other.id


async def test_a_memory_whose_id_is_taken_stays_as_it_is(state: State) -> None:
    await _add(state, _event("harbour one", id="e1"))
    await _add(state, _event("harbour changed", id="e1"), _event("harbour two", id="e2"))
    assert sorted(await _search(state, "harbour")) == ["harbour one", "harbour two"]


async def test_a_deleted_memory_is_gone_and_does_not_come_back(state: State) -> None:
    memory = HoldfastMemoryService(state)
    events = [_event("harbour one", id="e1"), _event("harbour two", id="e2")]
    await _add(state, *events)
    await _add(state, *events, user="ben")
    for gone in ("e1", "unknown", None):
        await memory.delete_memory(app_name=APP, user_id="ana", memory_id=gone)
    await _add(state, *events)
    assert await _search(state, "harbour") == ["harbour two"]
    assert len(await _search(state, "harbour", user="ben")) == 2
    stored = await state.episodes.recent(ALL_AGENTS)
    assert sorted(one.payload["text"] for one in stored) == [
        *("harbour one", "harbour two", "harbour two")
    ]


async def test_a_memory_that_is_deleted_while_it_is_added_is_not_found(state: State) -> None:
    memory = HoldfastMemoryService(state)
    events = [_event(f"harbour {n}", id=f"e{n}") for n in range(8)]
    await asyncio.gather(
        *(_add(state, one) for one in events),
        *(memory.delete_memory(app_name=APP, user_id="ana", memory_id=one.id) for one in events),
    )
    assert await _search(state, "harbour") == []


async def test_users_apps_tenants_and_owners_are_apart(state: State) -> None:
    await _add(state.for_owner("o1"), _event("harbour"))
    others = [
        (state.for_owner("o2"), "ana", APP),
        (state, "ana", APP),
        (state.for_tenant(new_ref()).for_owner("o1"), "ana", APP),
        (state.for_owner("o1"), "ben", APP),
        (state.for_owner("o1"), "ana", "other"),
    ]
    for view, user, app in others:
        assert await _search(view, "harbour", user, app) == []
    assert await _search(state.for_owner("o1"), "harbour") == ["harbour"]


async def test_a_memory_that_cannot_be_stored_is_refused_and_none_is_added(state: State) -> None:
    for bad in (_event("x" * 2_000_000), _event("harbour", timestamp=1e300)):
        with pytest.raises(InvalidInputError):
            await _add(state, _event("harbour"), bad)
        assert await _search(state, "harbour") == []
