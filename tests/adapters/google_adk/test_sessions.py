"""The session service: what ADK asks of every one, and what it does not ask."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

import pytest
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.session import Session
from google.genai import types

from holdfast import ALL_AGENTS, State
from holdfast.errors import InvalidInputError
from holdfast.values.ids import new_ref
from tests.adapters.google_adk.calls import APP, create, event_with, get, service_on, texts

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_session_comes_back_as_it_was(state: State) -> None:
    made = await create(state, values={"port": "Riga", "user:unit": "m", "app:tide": 1})
    assert await get(state) == made
    blob = types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png"))
    call = types.Part(
        function_call=types.FunctionCall(id="c1", name="tide", args={"port": "Riga"}),
        thought_signature=b"\xfe\x00",
    )
    events = [
        event_with("low tide?"),
        Event(
            author="pilot",
            invocation_id="i1",
            content=types.Content(role="model", parts=[blob, call]),
            actions=EventActions(state_delta={"n": 1, "nothing": None}, artifact_delta={"f": 0}),
            branch="a.b",
            long_running_tool_ids={"c1"},
            custom_metadata={"k": [1, {"x": "\u2028"}]},
        ),
    ]
    for event in events:
        await service_on(state).append_event(made, event)
    found = await get(state)
    assert found == made
    assert found.events == made.events == events
    assert found.state == made.state
    assert found.state == {
        "port": "Riga",
        "user:unit": "m",
        "app:tide": 1,
        "n": 1,
        "nothing": None,
    }
    assert found.last_update_time == made.last_update_time == events[-1].timestamp


async def test_states_have_three_scopes(state: State) -> None:
    first = await create(state, values={"app:k": 1, "user:z": 2, "own": 3})
    await service_on(state).append_event(first, event_with(delta={"app:k2": 4, "user:z2": 5}))
    other = await create(state, user="ben", session="s2")
    assert other.state == {"app:k": 1, "app:k2": 4}
    assert (await create(state, session="s3")).state == {
        "app:k": 1,
        "app:k2": 4,
        "user:z": 2,
        "user:z2": 5,
    }
    service = service_on(state)
    assert await service.get_user_state(app_name=APP, user_id="ana") == {"z": 2, "z2": 5}
    assert await service.get_user_state(app_name=APP, user_id="nobody") == {}
    assert await service.get_user_state(app_name="other", user_id="ana") == {}


async def test_temporary_keys_are_seen_and_never_stored(state: State) -> None:
    made = await create(state, values={"temp:at": 0, "kept": 1})
    await service_on(state).append_event(made, event_with(delta={"temp:x": 1, "temp:holdfast": 2}))
    assert (made.state["temp:x"], made.state["temp:holdfast"]) == (1, 2)
    found = await get(state)
    assert found.state == {"kept": 1}
    assert found.events[0].actions.state_delta == {}
    await service_on(state).append_event(made, event_with(delta={"y": 2}))
    assert (await get(state)).state == {"kept": 1, "y": 2}


async def test_a_partial_event_is_not_stored(state: State) -> None:
    made = await create(state)
    await service_on(state).append_event(made, event_with("half", partial=True, delta={"a": 1}))
    found = await get(state)
    assert (made.events, found.events, found.state) == ([], [], {})


async def test_a_session_is_created_once(state: State) -> None:
    made = await create(state, values={"first": True})
    for session in ("s1", " s1 "):
        with pytest.raises(AlreadyExistsError, match="s1"):
            await create(state, session=session, values={"second": True, "user:second": True})
    tried = await asyncio.gather(
        *(create(state, session="s2", values={"n": n, "user:n": n}) for n in range(5)),
        return_exceptions=True,
    )
    [winner] = [one for one in tried if isinstance(one, Session)]
    assert sum(isinstance(one, AlreadyExistsError) for one in tried) == 4
    assert (await get(state, session="s2")).state == winner.state
    assert (await get(state)).state["first"] == made.state["first"]
    listed = await service_on(state).list_sessions(app_name=APP)
    assert [one.id for one in listed.sessions] == ["s1", "s2"]
    assert len({(await create(state, session=blank)).id for blank in (None, "", "  ")}) == 3


async def test_ids_are_any_text_and_padding_is_none(state: State) -> None:
    long = "x" * 2_000
    for session in (" s1 ", '["a"]', "a/b\n", long):
        made = await create(state, user=long, session=session)
        await service_on(state).append_event(made, event_with("hello", invocation_id=long))
        assert made.id == session.strip()
        found = await get(state, user=long, session=f" {session} ")
        assert (found.id, texts(found)) == (made.id, ["hello"])
    listed = (await service_on(state).list_sessions(app_name=APP)).sessions
    assert sorted(one.id for one in listed) == sorted(["s1", '["a"]', "a/b", long])
    assert {one.user_id for one in listed} == {long}
    assert await get(state, user=long, session="") is None


async def test_sessions_are_listed_by_the_time_of_their_last_event(state: State) -> None:
    now = time.time()
    for name, user, seconds in (("b", "ana", 30), ("c", "ben", 10), ("a", "ana", 20)):
        made = await create(state, user=user, session=name, values={"k": name, "user:u": user})
        await service_on(state).append_event(made, event_with("x", timestamp=now + seconds))
    listed = (await service_on(state).list_sessions(app_name=APP)).sessions
    assert [(one.id, one.user_id, one.events) for one in listed] == [
        *(("c", "ben", []), ("a", "ana", []), ("b", "ana", []))
    ]
    assert [one.state for one in listed] == [
        *({"k": "c", "user:u": "ben"}, {"k": "a", "user:u": "ana"}, {"k": "b", "user:u": "ana"})
    ]
    assert [one.last_update_time for one in listed] == [now + 10, now + 20, now + 30]
    service = service_on(state)
    mine = (await service.list_sessions(app_name=APP, user_id="ana")).sessions
    assert [one.id for one in mine] == ["a", "b"]
    await service.append_event(mine[0], event_with("y"))
    assert (await service.list_sessions(app_name="other")).sessions == []
    assert (await service.list_sessions(app_name=APP, user_id="nobody")).sessions == []


async def test_more_sessions_than_a_page_are_all_listed(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.google_adk.sessions._PAGE", 3)
    monkeypatch.setattr("holdfast.adapters.google_adk.sessions.MAX_STATES", 2)
    for n in range(6):
        await create(state, session=f"s{n}")
    listed = await service_on(state).list_sessions(app_name=APP)
    assert sorted(one.id for one in listed.sessions) == [f"s{n}" for n in range(6)]


async def test_a_part_of_the_events_is_read(state: State) -> None:
    made = await create(state)
    for second in range(1, 6):
        await service_on(state).append_event(made, event_with(str(second), timestamp=second))
    wanted: list[tuple[dict[str, Any], str]] = [
        ({}, "12345"),
        ({"num_recent_events": 0}, ""),
        ({"num_recent_events": 3}, "345"),
        ({"num_recent_events": 9}, "12345"),
        ({"after_timestamp": 4.0}, "45"),
        ({"after_timestamp": 50}, ""),
        ({"after_timestamp": 4.0, "num_recent_events": 3}, "45"),
    ]
    for config, expected in wanted:
        found = await get(state, **config)
        assert "".join(texts(found)) == expected
        assert found.last_update_time == 5
    await service_on(state).append_event(await get(state, num_recent_events=0), event_with("6"))
    assert "".join(texts(await get(state))) == "123456"


async def test_a_deleted_session_is_gone_with_its_events(state: State) -> None:
    service, made = service_on(state), await create(state, values={"own": 1, "user:z": 2})
    await service.append_event(made, event_with("secret"))
    await service.delete_session(app_name=APP, user_id="ben", session_id="s1")
    for _ in range(2):
        await service.delete_session(app_name=APP, user_id="ana", session_id=" s1")
        assert await get(state) is None
        assert (await service.list_sessions(app_name=APP)).sessions == []
        assert await state.episodes.recent(ALL_AGENTS) == []
    with pytest.raises(SessionNotFoundError):
        await service.append_event(made, event_with("late"))
    new = await create(state)
    assert (new.state, new.events) == ({"user:z": 2}, [])
    with pytest.raises(StaleSessionError):
        await service.append_event(made, event_with("late"))
    assert (await get(state)).events == []


async def test_an_append_to_a_session_that_is_unknown_or_being_read_is_refused(
    state: State,
) -> None:
    service = service_on(state)
    unknown = Session(app_name=APP, user_id="ana", id="nothing")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(unknown, event_with("a"))
    await create(state)
    read = await get(state)
    await service.delete_session(app_name=APP, user_id="ana", session_id="s1")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(read, event_with("a"))
    assert await state.episodes.recent(ALL_AGENTS) == []


async def test_users_tenants_and_owners_are_apart(state: State) -> None:
    views = [
        (state, "ana"),
        (state, "ben"),
        (state.for_owner("o1"), "ana"),
        (state.for_owner("o2"), "ana"),
        (state.for_tenant(new_ref()), "ana"),
    ]
    for at, (view, user) in enumerate(views):
        made = await create(view, user=user, values={"n": at, "user:n": at})
        await service_on(view).append_event(made, event_with(str(at)))
    for at, (view, user) in enumerate(views):
        found = await get(view, user=user)
        assert (texts(found), found.state) == ([str(at)], {"n": at, "user:n": at})
        listed = await service_on(view).list_sessions(app_name=APP, user_id=user)
        assert [one.state["n"] for one in listed.sessions] == [at]
    everybody = await service_on(state).list_sessions(app_name=APP)
    assert [one.state["n"] for one in everybody.sessions] == [0, 1]
    await service_on(state.for_owner("o1")).delete_session(
        app_name=APP, user_id="ana", session_id="s1"
    )
    assert [(await get(view, user=user)) is None for view, user in views] == [
        *(False, False, True, False, False)
    ]


@pytest.mark.parametrize(
    "bad",
    [
        {"delta": {"a": 1, "user:n": math.nan}},
        {"delta": {"a": "x" * 2_000_000}},
        {"text": "x" * 2_000_000, "delta": {"a": 1}},
        {"timestamp": 1e300, "delta": {"a": 1}},
        {"timestamp": math.nan, "delta": {"a": 1}},
        {"delta": {"a": 1 << 80}},
    ],
    ids=["nan", "large state", "large event", "time", "no time", "large number"],
)
async def test_an_event_that_cannot_be_stored_is_refused_and_nothing_is_written(
    state: State, bad: dict[str, Any]
) -> None:
    made = await create(state, values={"a": 0})
    with pytest.raises(InvalidInputError):
        await service_on(state).append_event(made, event_with(**bad))
    found = await get(state)
    assert (found.events, found.state, made.events, made.state) == ([], {"a": 0}, [], {"a": 0})
    await service_on(state).append_event(made, event_with("fine"))


async def test_a_session_that_cannot_be_stored_is_refused_and_nothing_is_written(
    state: State,
) -> None:
    for bad in ({"a": math.nan}, {"a": "x" * 2_000_000}, {"user:a": 1 << 80}):
        with pytest.raises(InvalidInputError):
            await create(state, values={"app:b": 1, **bad})
    assert await state.episodes.list_sessions(ALL_AGENTS) == []
    assert (await create(state)).state == {}


async def test_recall_finds_what_was_said(state: State) -> None:
    made = await create(state)
    await service_on(state).append_event(made, event_with("the harbour of Riga"))
    [found] = await state.episodes.recall(ALL_AGENTS, "harbour")
    assert found.event.payload["event"]["content"]["parts"][0]["text"] == "the harbour of Riga"
