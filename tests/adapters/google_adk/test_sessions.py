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
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types

from holdfast import ALL_AGENTS, State
from holdfast.adapters.google_adk import HoldfastSessionService
from holdfast.errors import ConflictError, InvalidInputError
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
APP = "tides"


def _event(text: str = "", **fields: Any) -> Event:
    delta = fields.pop("delta", {})
    content = types.Content(role="user", parts=[types.Part(text=text)]) if text else None
    return Event(
        invocation_id=fields.pop("invocation_id", "i1"),
        author="user",
        content=content,
        actions=EventActions(state_delta=delta),
        **fields,
    )


def _service(state: State) -> HoldfastSessionService:
    return HoldfastSessionService(state)


async def _create(
    state: State,
    user: str = "ana",
    session: str | None = "s1",
    values: dict[str, Any] | None = None,
) -> Any:
    return await _service(state).create_session(
        app_name=APP, user_id=user, session_id=session, state=values
    )


async def _get(state: State, user: str = "ana", session: str = "s1", **config: Any) -> Any:
    return await _service(state).get_session(
        app_name=APP,
        user_id=user,
        session_id=session,
        config=GetSessionConfig(**config) if config else None,
    )


def _texts(session: Session) -> list[str]:
    return [one.content.parts[0].text for one in session.events if one.content]


async def test_a_session_comes_back_as_it_was(state: State) -> None:
    made = await _create(state, values={"port": "Riga", "user:unit": "m", "app:tide": 1})
    assert await _get(state) == made
    blob = types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png"))
    call = types.Part(
        function_call=types.FunctionCall(id="c1", name="tide", args={"port": "Riga"}),
        thought_signature=b"\xfe\x00",
    )
    events = [
        _event("low tide?"),
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
        await _service(state).append_event(made, event)
    found = await _get(state)
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
    first = await _create(state, values={"app:k": 1, "user:z": 2, "own": 3})
    await _service(state).append_event(first, _event(delta={"app:k2": 4, "user:z2": 5}))
    other = await _create(state, user="ben", session="s2")
    assert other.state == {"app:k": 1, "app:k2": 4}
    assert (await _create(state, session="s3")).state == {
        "app:k": 1,
        "app:k2": 4,
        "user:z": 2,
        "user:z2": 5,
    }
    service = _service(state)
    assert await service.get_user_state(app_name=APP, user_id="ana") == {"z": 2, "z2": 5}
    assert await service.get_user_state(app_name=APP, user_id="nobody") == {}
    assert await service.get_user_state(app_name="other", user_id="ana") == {}


async def test_temporary_keys_are_seen_and_never_stored(state: State) -> None:
    made = await _create(state, values={"temp:at": 0, "kept": 1})
    await _service(state).append_event(made, _event(delta={"temp:x": 1, "temp:holdfast": 2}))
    assert (made.state["temp:x"], made.state["temp:holdfast"]) == (1, 2)
    found = await _get(state)
    assert found.state == {"kept": 1}
    assert found.events[0].actions.state_delta == {}
    await _service(state).append_event(made, _event(delta={"y": 2}))
    assert (await _get(state)).state == {"kept": 1, "y": 2}


async def test_a_partial_event_is_not_stored(state: State) -> None:
    made = await _create(state)
    await _service(state).append_event(made, _event("half", partial=True, delta={"a": 1}))
    found = await _get(state)
    assert (made.events, found.events, found.state) == ([], [], {})


async def test_a_session_is_created_once(state: State) -> None:
    made = await _create(state, values={"first": True})
    for session in ("s1", " s1 "):
        with pytest.raises(AlreadyExistsError, match="s1"):
            await _create(state, session=session, values={"second": True, "user:second": True})
    tried = await asyncio.gather(
        *(_create(state, session="s2", values={"n": n, "user:n": n}) for n in range(5)),
        return_exceptions=True,
    )
    [winner] = [one for one in tried if isinstance(one, Session)]
    assert sum(isinstance(one, AlreadyExistsError) for one in tried) == 4
    assert (await _get(state, session="s2")).state == winner.state
    assert (await _get(state)).state["first"] == made.state["first"]
    listed = await _service(state).list_sessions(app_name=APP)
    assert [one.id for one in listed.sessions] == ["s1", "s2"]
    assert len({(await _create(state, session=blank)).id for blank in (None, "", "  ")}) == 3


async def test_ids_are_any_text_and_padding_is_none(state: State) -> None:
    long = "x" * 2_000
    for session in (" s1 ", '["a"]', "a/b\n", long):
        made = await _create(state, user=long, session=session)
        await _service(state).append_event(made, _event("hello", invocation_id=long))
        assert made.id == session.strip()
        found = await _get(state, user=long, session=f" {session} ")
        assert (found.id, _texts(found)) == (made.id, ["hello"])
    listed = (await _service(state).list_sessions(app_name=APP)).sessions
    assert sorted(one.id for one in listed) == sorted(["s1", '["a"]', "a/b", long])
    assert {one.user_id for one in listed} == {long}
    assert await _get(state, user=long, session="") is None


async def test_sessions_are_listed_by_the_time_of_their_last_event(state: State) -> None:
    now = time.time()
    for name, user, seconds in (("b", "ana", 30), ("c", "ben", 10), ("a", "ana", 20)):
        made = await _create(state, user=user, session=name, values={"k": name, "user:u": user})
        await _service(state).append_event(made, _event("x", timestamp=now + seconds))
    listed = (await _service(state).list_sessions(app_name=APP)).sessions
    assert [(one.id, one.user_id, one.events) for one in listed] == [
        *(("c", "ben", []), ("a", "ana", []), ("b", "ana", []))
    ]
    assert [one.state for one in listed] == [
        *({"k": "c", "user:u": "ben"}, {"k": "a", "user:u": "ana"}, {"k": "b", "user:u": "ana"})
    ]
    assert [one.last_update_time for one in listed] == [now + 10, now + 20, now + 30]
    service = _service(state)
    mine = (await service.list_sessions(app_name=APP, user_id="ana")).sessions
    assert [one.id for one in mine] == ["a", "b"]
    await service.append_event(mine[0], _event("y"))
    assert (await service.list_sessions(app_name="other")).sessions == []
    assert (await service.list_sessions(app_name=APP, user_id="nobody")).sessions == []


async def test_more_sessions_than_a_page_are_all_listed(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.google_adk.sessions._PAGE", 3)
    monkeypatch.setattr("holdfast.adapters.google_adk.sessions.MAX_STATES", 2)
    for n in range(6):
        await _create(state, session=f"s{n}")
    listed = await _service(state).list_sessions(app_name=APP)
    assert sorted(one.id for one in listed.sessions) == [f"s{n}" for n in range(6)]


async def test_a_part_of_the_events_is_read(state: State) -> None:
    made = await _create(state)
    for second in range(1, 6):
        await _service(state).append_event(made, _event(str(second), timestamp=second))
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
        found = await _get(state, **config)
        assert "".join(_texts(found)) == expected
        assert found.last_update_time == 5
    await _service(state).append_event(await _get(state, num_recent_events=0), _event("6"))
    assert "".join(_texts(await _get(state))) == "123456"


async def test_of_two_stale_writers_one_is_refused(state: State) -> None:
    await _create(state)
    for turn in range(4):
        read = await _get(state)
        copies = [read.model_copy(deep=True), await _get(state)]
        tried = await asyncio.gather(
            *(
                _service(state).append_event(one, _event(f"{turn}", delta={f"by {at}": turn}))
                for at, one in enumerate(copies)
            ),
            return_exceptions=True,
        )
        [refused] = [one for one in tried if isinstance(one, Exception)]
        assert isinstance(refused, StaleSessionError)
        assert "modified in storage" in str(refused)
        loser = copies[tried.index(refused)]
        assert loser.events == read.events
        with pytest.raises(StaleSessionError):
            await _service(state).append_event(loser, _event("again"))
    assert _texts(await _get(state)) == ["0", "1", "2", "3"]


async def test_a_writer_that_wrote_before_is_stale_too(state: State) -> None:
    mine = await _create(state)
    await _service(state).append_event(mine, _event("a"))
    theirs = await _get(state)
    await _service(state).append_event(theirs, _event("b"))
    with pytest.raises(StaleSessionError):
        await _service(state).append_event(mine, _event("c"))
    await _service(state).append_event(theirs, _event("d"))
    assert _texts(await _get(state)) == ["a", "b", "d"]


async def test_a_session_without_a_marker_is_stale_only_if_somebody_wrote(state: State) -> None:
    made = await _create(state)
    await _service(state).append_event(made, _event("a"))
    bare = Session.model_validate_json(made.model_dump_json())
    bare.last_update_time -= 1e-4
    await _service(state).append_event(bare, _event("b"))
    old = Session.model_validate_json(made.model_dump_json())
    with pytest.raises(StaleSessionError):
        await _service(state).append_event(old, _event("c"))
    assert _texts(await _get(state)) == ["a", "b"]


async def test_branches_that_share_a_session_all_append(state: State) -> None:
    service, made = _service(state), await _create(state)
    await asyncio.gather(
        *(service.append_event(made, _event(str(n), delta={f"k{n}": n})) for n in range(8))
    )
    found = await _get(state)
    assert found.events == made.events
    assert sorted(_texts(found)) == list("01234567")
    assert found.state == {f"k{n}": n for n in range(8)}


async def test_an_event_that_is_delivered_twice_is_stored_once(state: State) -> None:
    service, made = _service(state), await _create(state)
    event = _event("a", delta={"n": 1})
    await service.append_event(made, event)
    await service.append_event(made, event.model_copy(deep=True))
    assert _texts(made) == ["a"]
    await service.append_event(made, _event("b", delta={"n": 2}))
    again = await _get(state)
    await service.append_event(again, event.model_copy(deep=True))
    await service.append_event(again, _event("c"))
    found = await _get(state)
    assert (_texts(found), found.state) == (["a", "b", "c"], {"n": 2})
    with pytest.raises(ConflictError):
        await service.append_event(found, _event("other", id=event.id))


async def test_an_append_whose_answer_was_lost_is_repeated(state: State) -> None:
    service, made = _service(state), await _create(state)
    for turn, text in enumerate("ab"):
        # The caller has what it had before, as after a cut connection.
        before = made.model_copy(deep=True)
        event = _event(text, delta={"n": turn})
        await service.append_event(made, event)
        await service.append_event(before, event)
        assert before == made
        made = before
    await service.append_event(made, _event("c"))
    found = await _get(state)
    assert (_texts(found), found.state) == (["a", "b", "c"], {"n": 1})


async def test_a_deleted_session_is_gone_with_its_events(state: State) -> None:
    service, made = _service(state), await _create(state, values={"own": 1, "user:z": 2})
    await service.append_event(made, _event("secret"))
    await service.delete_session(app_name=APP, user_id="ben", session_id="s1")
    for _ in range(2):
        await service.delete_session(app_name=APP, user_id="ana", session_id=" s1")
        assert await _get(state) is None
        assert (await service.list_sessions(app_name=APP)).sessions == []
        assert await state.episodes.recent(ALL_AGENTS) == []
    with pytest.raises(SessionNotFoundError):
        await service.append_event(made, _event("late"))
    new = await _create(state)
    assert (new.state, new.events) == ({"user:z": 2}, [])
    with pytest.raises(StaleSessionError):
        await service.append_event(made, _event("late"))
    assert (await _get(state)).events == []


async def test_an_append_to_a_session_that_is_unknown_or_being_read_is_refused(
    state: State,
) -> None:
    service = _service(state)
    unknown = Session(app_name=APP, user_id="ana", id="nothing")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(unknown, _event("a"))
    await _create(state)
    read = await _get(state)
    await service.delete_session(app_name=APP, user_id="ana", session_id="s1")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(read, _event("a"))
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
        made = await _create(view, user=user, values={"n": at, "user:n": at})
        await _service(view).append_event(made, _event(str(at)))
    for at, (view, user) in enumerate(views):
        found = await _get(view, user=user)
        assert (_texts(found), found.state) == ([str(at)], {"n": at, "user:n": at})
        listed = await _service(view).list_sessions(app_name=APP, user_id=user)
        assert [one.state["n"] for one in listed.sessions] == [at]
    everybody = await _service(state).list_sessions(app_name=APP)
    assert [one.state["n"] for one in everybody.sessions] == [0, 1]
    await _service(state.for_owner("o1")).delete_session(
        app_name=APP, user_id="ana", session_id="s1"
    )
    assert [(await _get(view, user=user)) is None for view, user in views] == [
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
    made = await _create(state, values={"a": 0})
    with pytest.raises(InvalidInputError):
        await _service(state).append_event(made, _event(**bad))
    found = await _get(state)
    assert (found.events, found.state, made.events, made.state) == ([], {"a": 0}, [], {"a": 0})
    await _service(state).append_event(made, _event("fine"))


async def test_recall_finds_what_was_said(state: State) -> None:
    made = await _create(state)
    await _service(state).append_event(made, _event("the harbour of Riga"))
    [found] = await state.episodes.recall(ALL_AGENTS, "harbour")
    assert found.event.payload["event"]["content"]["parts"][0]["text"] == "the harbour of Riga"
