"""Sessions whose events and states are in different stores: a write may be cut off at each step."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError

import holdfast
from holdfast import ALL_AGENTS, State
from holdfast.adapters.google_adk.records import OWN_KEY, SessionName
from holdfast.errors import ConflictError
from holdfast.values.ids import new_ref
from tests.adapters.google_adk.calls import APP, create, event_with, get, service_on, texts
from tests.adapters.google_adk.worker import STEPS, DiedError, dying

pytestmark = pytest.mark.asyncio(loop_scope="session")
DELTA = {"n": 1, "user:unit": "ft", "app:tide": 2}


@pytest_asyncio.fixture(loop_scope="session")
async def apart(state: State) -> State:
    """A state of each wiring that stores events and states separately, as Redis does by itself."""
    state.episodes.refuse_patches("redis")
    return state


async def _stored(state: State) -> tuple[list[str], dict[str, Any]]:
    found = await get(state)
    return texts(found), found.state


async def test_a_session_in_two_stores_comes_back_as_it_was(apart: State) -> None:
    made = await create(apart, values={"port": "Riga", "user:unit": "m", "app:tide": 1})
    assert await get(apart) == made
    await service_on(apart).append_event(made, event_with("a", delta=DELTA))
    found = await get(apart)
    assert found == made
    assert found.state == {"port": "Riga", "n": 1, "user:unit": "ft", "app:tide": 2}
    assert await service_on(apart).get_user_state(app_name=APP, user_id="ana") == {"unit": "ft"}
    [listed] = (await service_on(apart).list_sessions(app_name=APP)).sessions
    assert listed.state == found.state
    # Between two writes the state has no copy of the event.
    own = await apart.short_term.get_state(SessionName(APP, "ana", "s1").states[0])
    assert "pending" not in own[OWN_KEY]


@pytest.mark.parametrize("step", STEPS)
async def test_a_write_that_died_is_there_as_a_whole_or_not_at_all(apart: State, step: str) -> None:
    made = await create(apart)
    with dying(apart, step), pytest.raises(DiedError):
        await service_on(apart).append_event(made, event_with("a", delta=DELTA))
    assert await _stored(apart) == (([], {}) if step == "first" else (["a"], DELTA))
    again = await get(apart)
    await service_on(apart).append_event(again, event_with("b", delta={"n": 2}))
    assert (await _stored(apart))[0][-1] == "b"
    assert (await _stored(apart))[1]["n"] == 2


@pytest.mark.parametrize("step", STEPS)
async def test_a_write_that_died_is_repeated_by_its_caller(apart: State, step: str) -> None:
    service, made = service_on(apart), await create(apart)
    event = event_with("a", delta=DELTA)
    before = made.model_copy(deep=True)
    with dying(apart, step), pytest.raises(DiedError):
        await service.append_event(made, event)
    assert made == before
    # The process goes on, or another one has the session and the event.
    await service.append_event(made, event)
    await service_on(apart).append_event(before, event)
    assert texts(made) == texts(before) == ["a"]
    await service.append_event(made, event_with("b"))
    assert await _stored(apart) == (["a", "b"], DELTA)


async def test_another_event_under_the_id_of_one_that_died_is_a_conflict(apart: State) -> None:
    made = await create(apart)
    event = event_with("a", delta=DELTA)
    with dying(apart, "log"), pytest.raises(DiedError):
        await service_on(apart).append_event(made, event)
    with pytest.raises(ConflictError):
        await service_on(apart).append_event(made, event_with("b", delta={"n": 9}, id=event.id))
    assert await _stored(apart) == (["a"], DELTA)


@pytest.mark.parametrize("step", [one for one in STEPS if one != "log"])
async def test_a_creation_that_died_is_there_as_a_whole_or_not_at_all(
    apart: State, step: str
) -> None:
    with dying(apart, step), pytest.raises(DiedError):
        await create(apart, values=DELTA)
    found = await get(apart)
    assert found is None if step == "first" else found.state == DELTA


async def test_what_is_finished_later_does_not_undo_what_others_wrote(apart: State) -> None:
    made, other = await create(apart), await create(apart, session="s2")
    with dying(apart, "last"), pytest.raises(DiedError):
        await service_on(apart).append_event(made, event_with("a", delta=DELTA))
    await service_on(apart).append_event(other, event_with("b", delta={"user:unit": "m"}))
    assert (await get(apart)).state == DELTA | {"user:unit": "m"}


async def test_a_write_to_a_session_that_was_listed_finishes_the_one_before(apart: State) -> None:
    made, service = await create(apart), service_on(apart)
    with dying(apart, "log"), pytest.raises(DiedError):
        await service.append_event(made, event_with("a", delta=DELTA))
    [listed] = (await service.list_sessions(app_name=APP)).sessions
    await service.append_event(listed, event_with("b"))
    assert await _stored(apart) == (["a", "b"], DELTA)


async def test_many_who_finish_a_write_at_once_finish_it_once(apart: State) -> None:
    made = await create(apart)
    with dying(apart, "log"), pytest.raises(DiedError):
        await service_on(apart).append_event(made, event_with("a", delta=DELTA))
    found = await asyncio.gather(*(get(apart) for _ in range(8)))
    assert [(texts(one), one.state) for one in found] == [(["a"], DELTA)] * 8
    await service_on(apart).append_event(found[0], event_with("b"))
    assert (await _stored(apart))[0] == ["a", "b"]


async def test_a_session_that_is_deleted_while_it_is_written_keeps_no_event(
    apart: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, real = await create(apart), type(apart.episodes).append

    async def after_the_deletion(*arguments: Any, **options: Any) -> Any:
        if not options:
            monkeypatch.undo()
            await service_on(apart).delete_session(app_name=APP, user_id="ana", session_id="s1")
        return await real(*arguments, **options)

    monkeypatch.setattr(type(apart.episodes), "append", after_the_deletion)
    with pytest.raises(SessionNotFoundError):
        await service_on(apart).append_event(made, event_with("secret"))
    assert await get(apart) is None
    assert await apart.episodes.recent(ALL_AGENTS) == []


async def test_a_state_that_went_back_follows_the_events_again(apart: State) -> None:
    service, made = service_on(apart), await create(apart, values={"port": "Riga"})
    await service.append_event(made, event_with("a", delta={"n": 1}))
    key = SessionName(APP, "ana", "s1").states[0]
    saved = await apart.short_term.get_state(key)
    await service.append_event(made, event_with("b", delta={"n": 2}))
    await service.append_event(made, event_with("c", delta={"m": 3}))
    # As after the loss of a Redis, which goes on with the states that were saved.
    await apart.short_term.set_state(key, saved)
    assert await _stored(apart) == (["a", "b", "c"], {"port": "Riga", "n": 2, "m": 3})
    again = await get(apart, num_recent_events=1)
    await service_on(apart).append_event(again, event_with("d"))
    assert (await _stored(apart))[0] == ["a", "b", "c", "d"]


async def test_a_write_to_a_state_that_went_back_loses_no_change(apart: State) -> None:
    service, made = service_on(apart), await create(apart)
    key = SessionName(APP, "ana", "s1").states[0]
    saved, old = await apart.short_term.get_state(key), made.model_copy(deep=True)
    await service.append_event(made, event_with("a", delta={"n": 1, "user:unit": "m"}))
    await service.append_event(made, event_with("b", delta={"m": 2}))
    await apart.short_term.set_state(key, saved)
    await service_on(apart).append_event(old, event_with("c", delta={"k": 3}))
    state = {"n": 1, "m": 2, "k": 3, "user:unit": "m"}
    assert await _stored(apart) == (["a", "b", "c"], state)
    with pytest.raises(StaleSessionError):
        await service.append_event(old, event_with("d"))
    await service.append_event(await get(apart), event_with("d"))
    assert await _stored(apart) == (["a", "b", "c", "d"], state)


async def test_an_event_that_was_deleted_stays_deleted(apart: State) -> None:
    made = await create(apart)
    await service_on(apart).append_event(made, event_with("secret", id="e1"))
    [log] = await apart.episodes.list_sessions(ALL_AGENTS)
    assert await apart.episodes.delete_events(log.id, ["e1"]) == 1
    assert texts(await get(apart)) == []
    await service_on(apart).append_event(await get(apart), event_with("b"))
    assert texts(await get(apart)) == ["b"]


async def test_a_key_that_looks_like_one_of_the_service_is_a_key_like_any_other(
    state: State,
) -> None:
    values = {f"user:{OWN_KEY}": 1, f"app:{OWN_KEY}=": {"x": 2}, f"user:{OWN_KEY}==": 3}
    made = await create(state, values=values)
    await service_on(state).append_event(made, event_with("a", delta={f"app:{OWN_KEY}": 4}))
    assert (await get(state)).state == made.state == values | {f"app:{OWN_KEY}": 4}
    found = await service_on(state).get_user_state(app_name=APP, user_id="ana")
    assert found == {OWN_KEY: 1, f"{OWN_KEY}==": 3}


@pytest.mark.parametrize("step", STEPS)
async def test_kill_9_within_a_write_on_valkey_and_postgres_loses_nothing(
    database: str, step: str
) -> None:
    redis = _redis()
    tenant = new_ref()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.google_adk.worker", database, redis, tenant, step),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == f"in {step}\n".encode()
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    async with holdfast.open(database, redis=redis, tenant=tenant) as state:
        found = await get(state)
        assert (texts(found), found.state) == (
            (["before"], {}) if step == "first" else (["before", "a"], DELTA)
        )
        await service_on(state).append_event(found, event_with("b"))
        assert texts(await get(state))[-1] == "b"


def _redis() -> str:
    # Imported here: not every environment has Valkey.
    from tests.wiring.valkey import valkey  # noqa: PLC0415

    return valkey().url
