"""Several writers to one session, and writes that are repeated."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.sessions.session import Session

from holdfast import State
from holdfast.errors import ConflictError
from tests.adapters.google_adk.calls import create, event_with, get, service_on, texts

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_of_two_stale_writers_one_is_refused(state: State) -> None:
    await create(state)
    for turn in range(4):
        read = await get(state)
        copies = [read.model_copy(deep=True), await get(state)]
        tried = await asyncio.gather(
            *(
                service_on(state).append_event(one, event_with(f"{turn}", delta={f"by {at}": turn}))
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
            await service_on(state).append_event(loser, event_with("again"))
    assert texts(await get(state)) == ["0", "1", "2", "3"]


async def test_a_writer_that_wrote_before_is_stale_too(state: State) -> None:
    mine = await create(state)
    await service_on(state).append_event(mine, event_with("a"))
    theirs = await get(state)
    await service_on(state).append_event(theirs, event_with("b"))
    with pytest.raises(StaleSessionError):
        await service_on(state).append_event(mine, event_with("c"))
    await service_on(state).append_event(theirs, event_with("d"))
    assert texts(await get(state)) == ["a", "b", "d"]


async def test_a_session_without_a_marker_is_stale_only_if_somebody_wrote(state: State) -> None:
    made = await create(state)
    await service_on(state).append_event(made, event_with("a"))
    bare = Session.model_validate_json(made.model_dump_json())
    bare.last_update_time -= 1e-4
    await service_on(state).append_event(bare, event_with("b"))
    old = Session.model_validate_json(made.model_dump_json())
    with pytest.raises(StaleSessionError):
        await service_on(state).append_event(old, event_with("c"))
    assert texts(await get(state)) == ["a", "b"]


async def test_branches_that_share_a_session_all_append(state: State) -> None:
    service, made = service_on(state), await create(state)
    await asyncio.gather(
        *(service.append_event(made, event_with(str(n), delta={f"k{n}": n})) for n in range(8))
    )
    found = await get(state)
    assert found.events == made.events
    assert sorted(texts(found)) == list("01234567")
    assert found.state == {f"k{n}": n for n in range(8)}


async def test_an_event_that_is_delivered_twice_is_stored_once(state: State) -> None:
    service, made = service_on(state), await create(state)
    event = event_with("a", delta={"n": 1})
    await service.append_event(made, event)
    await service.append_event(made, event.model_copy(deep=True))
    assert texts(made) == ["a"]
    await service.append_event(made, event_with("b", delta={"n": 2}))
    again = await get(state)
    await service.append_event(again, event.model_copy(deep=True))
    await service.append_event(again, event_with("c"))
    found = await get(state)
    assert (texts(found), found.state) == (["a", "b", "c"], {"n": 2})
    with pytest.raises(ConflictError):
        await service.append_event(found, event_with("other", id=event.id))


async def test_an_append_whose_answer_was_lost_is_repeated(state: State) -> None:
    service, made = service_on(state), await create(state)
    for turn, text in enumerate("ab"):
        # The caller has what it had before, as after a cut connection.
        before = made.model_copy(deep=True)
        event = event_with(text, delta={"n": turn})
        await service.append_event(made, event)
        await service.append_event(before, event)
        assert before == made
        made = before
    await service.append_event(made, event_with("c"))
    found = await get(state)
    assert (texts(found), found.state) == (["a", "b", "c"], {"n": 1})
