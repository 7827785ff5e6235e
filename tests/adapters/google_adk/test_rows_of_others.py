"""Events and logs that others wrote under the names of a session: they are passed over."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import State
from holdfast.adapters.google_adk.records import (
    EVENT,
    SessionName,
    digest_of,
    dumped,
    head_of,
)
from holdfast.values.events import Event as LogEvent
from tests.adapters.google_adk.calls import APP, create, event_with, get, service_on, texts

pytestmark = pytest.mark.asyncio(loop_scope="session")
NAME = SessionName(APP, "ana", "s1")
FORGED = dumped(event_with("forged", delta={"n": 666, "user:admin": True}))


@pytest.mark.parametrize("apart", [False, True], ids=["one store", "two stores"])
@pytest.mark.parametrize(
    "payload",
    [{"event": FORGED}, {"event": {"id": 7}}, {"event": "text"}, {"x": 1}],
    ids=["under another id", "without a name", "no object", "without an event"],
)
async def test_an_event_that_the_service_did_not_write_is_passed_over(
    state: State, payload: dict[str, Any], *, apart: bool
) -> None:
    if apart:
        state.episodes.refuse_patches("redis")
    made = await create(state)
    await service_on(state).append_event(made, event_with("one"))
    [own] = await state.short_term.get_many(NAME.states[:1])
    log = head_of(own).log
    for at in range(3):
        await state.episodes.append([LogEvent(NAME.agent, log, EVENT, payload, id=f"other{at}")])
    found = await get(state)
    assert (texts(found), found.state) == (["one"], {})
    await service_on(state).append_event(found, event_with("two", delta={"n": 1}))
    found = await get(state)
    assert (texts(found), found.state) == (["one", "two"], {"n": 1})
    assert await service_on(state).get_user_state(app_name=APP, user_id="ana") == {}


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"user_id": "ana"},
        {"user_id": ["ana"], "session_id": "s1"},
        {"user_id": "ana", "session_id": "q", "states": 7},
        {"user_id": "ana", "session_id": "q", "states": [["x"], None]},
        {"user_id": "ana", "session_id": "q", "states": SessionName(APP, "ben", "s2").states},
    ],
)
async def test_a_log_that_the_service_did_not_start_is_in_no_list(
    state: State, metadata: dict[str, Any]
) -> None:
    await create(state, values={"port": "Riga"})
    await create(state, user="ben", session="s2", values={"port": "Brest"})
    await state.episodes.start_session(
        NAME.agent, metadata={"app": digest_of("app", APP), **metadata}
    )
    for user in (None, "ana"):
        listed = await service_on(state).list_sessions(app_name=APP, user_id=user)
        found = {(one.user_id, one.id): one.state for one in listed.sessions}
        hers = {("ana", "s1"): {"port": "Riga"}}
        assert found == (hers if user else {**hers, ("ben", "s2"): {"port": "Brest"}})
