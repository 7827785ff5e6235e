"""What is left if a process dies within a call, or somebody writes in the middle of one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.genai import types

from holdfast import ALL_AGENTS, State
from holdfast.adapters.google_adk import HoldfastArtifactService
from holdfast.errors import InvalidInputError
from tests.adapters.google_adk.calls import APP, create, event_with, get, service_on, texts

pytestmark = pytest.mark.asyncio(loop_scope="session")


class DiedError(Exception):
    """Ends a call where the process would die."""


async def _die(*_arguments: Any, **_options: Any) -> None:
    raise DiedError


async def test_a_creation_that_died_leaves_no_session(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(type(state.episodes), "append", _die)
        with pytest.raises(DiedError):
            await create(state, values={"n": 1})
    assert await get(state) is None
    assert (await service_on(state).list_sessions(app_name=APP)).sessions == []
    await create(state, values={"n": 2})
    listed = (await service_on(state).list_sessions(app_name=APP)).sessions
    assert [one.state for one in listed] == [{"n": 2}]


async def test_a_deletion_that_died_is_finished_by_the_next_one(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"app_name": APP, "user_id": "ana", "session_id": "s1"}
    await service_on(state).append_event(await create(state), event_with("secret"))
    with monkeypatch.context() as patch:
        patch.setattr(type(state.episodes), "delete_session", _die)
        with pytest.raises(DiedError):
            await service_on(state).delete_session(**names)
    assert await get(state) is None
    await service_on(state).delete_session(**names)
    assert await state.episodes.recent(ALL_AGENTS) == []
    assert (await create(state)).events == (await get(state)).events == []


async def test_events_and_state_of_a_session_are_of_one_moment(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await create(state)
    await service_on(state).append_event(made, event_with("a", delta={"n": 1}))
    real = type(state.short_term).get_many

    async def and_somebody_writes(*arguments: Any) -> Any:
        found = await real(*arguments)
        monkeypatch.undo()
        await service_on(state).append_event(made, event_with("b", delta={"n": 2}))
        return found

    monkeypatch.setattr(type(state.short_term), "get_many", and_somebody_writes)
    found = await get(state)
    assert (texts(found), found.state) == (["a"], {"n": 1})
    assert (texts(await get(state)), made.state) == (["a", "b"], {"n": 2})


async def test_an_artifact_that_is_refused_leaves_no_bytes(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs, real = list[str](), type(state.blobs).store

    async def store(*arguments: Any, **options: Any) -> str:
        refs.append(await real(*arguments, **options))
        return refs[-1]

    monkeypatch.setattr(type(state.blobs), "store", store)
    with pytest.raises(InvalidInputError):
        await HoldfastArtifactService(state).save_artifact(
            app_name=APP,
            user_id="ana",
            session_id="s1",
            filename="f",
            artifact=types.Part(text="low tide"),
            custom_metadata={"a": math.nan},
        )
    [ref] = refs
    assert not await state.blobs.delete(ref)
