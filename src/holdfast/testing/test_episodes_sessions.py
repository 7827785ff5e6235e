"""The promises of ``EpisodicMemory``: sessions, and clearing their logs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")


def _event(note: str, *, session: str = "s1", agent: AgentId = ANA, **more: Any) -> Event:
    return Event(agent, session, more.pop("type", "observation"), {"note": note}, **more)


def _notes(events: list[Event]) -> list[str]:
    return [event.payload["note"] for event in events]


async def test_sessions_are_created_on_first_use(store: Any) -> None:
    await store.append([_event("x")])
    session = await store.get_session("s1")
    assert (session.id, session.agent_id, session.ended_at) == ("s1", ANA, None)
    assert session.metadata == {}


async def test_start_session_is_idempotent_and_keeps_what_was_started(store: Any) -> None:
    first = await store.start_session(ANA, "s1", metadata={"channel": "mail"})
    again = await store.start_session(BEN, "s1")
    assert again == first
    changed = await store.start_session(ANA, "s1", metadata={})
    assert (changed.started_at, changed.metadata) == (first.started_at, {})
    minted = await store.start_session(ANA)
    assert await store.get_session(minted.id) == minted


async def test_a_session_that_ended_may_be_started_again(store: Any) -> None:
    first = await store.start_session(ANA, "s1")
    await store.end_session("s1")
    again = await store.start_session(ANA, "s1")
    assert (again.ended_at, again.started_at) == (None, first.started_at)


async def test_end_session_keeps_the_first_end(harness: Harness, store: Any) -> None:
    await store.append([_event("x")])
    ended = await store.end_session("s1")
    assert ended.ended_at is not None
    await harness.elapse(60)
    assert await store.end_session("s1") == ended
    assert await store.get_session("s1") == ended
    assert _notes(await store.recent(ANA, session_id="s1")) == ["x"]


async def test_ending_an_unknown_session_is_a_notfounderror(store: Any) -> None:
    with pytest.raises(NotFoundError) as caught:
        await store.end_session("nowhere")
    assert (caught.value.kind, caught.value.key) == ("session", "nowhere")


async def test_sessions_are_listed_newest_first_in_pages(harness: Harness, store: Any) -> None:
    for at in range(5):
        await store.start_session(ANA, f"s{at}")
        await harness.elapse(1)
    await store.start_session(BEN, "ben's")
    seen: list[str] = []
    page = await store.list_sessions(ANA, limit=2)
    while page:
        seen += [session.id for session in page]
        page = await store.list_sessions(ANA, limit=2, cursor=page[-1].cursor)
    assert seen == ["s4", "s3", "s2", "s1", "s0"]


async def test_clear_removes_the_whole_log_of_the_session_and_nothing_of_another(
    store: Any,
) -> None:
    await store.append([_event("a"), _event("b", agent=BEN), _event("c", session="s2")])
    assert await store.clear("s1") == 2
    assert _notes(await store.recent(ANA)) == ["c"]
    assert await store.recent(BEN) == []


async def test_clear_narrows_by_agent_run_and_types(store: Any) -> None:
    await store.append(
        [
            _event("a", run_id="r1"),
            _event("b", run_id="r1", type="decision"),
            _event("c", run_id="r2"),
            _event("d", run_id="r1", agent=BEN),
        ]
    )
    assert await store.clear("s1", agent_id=ANA, run_id="r1", types=["decision"]) == 1
    assert _notes(await store.recent(ANA)) == ["a", "c"]
    assert await store.clear("s1", run_id="r1") == 2
    assert _notes(await store.recent(ANA)) == ["c"]
    assert await store.recent(BEN) == []


async def test_clear_is_idempotent_and_says_how_many(store: Any) -> None:
    await store.append([_event("a"), _event("b")])
    assert [await store.clear("s1"), await store.clear("s1")] == [2, 0]


async def test_clear_of_an_empty_run_id_is_refused(store: Any) -> None:
    await store.append([_event("untagged")])
    with pytest.raises(InvalidInputError) as caught:
        await store.clear("s1", run_id="")
    assert caught.value.field == "run_id"
    assert _notes(await store.recent(ANA)) == ["untagged"]


async def test_sequence_numbers_are_never_reused_after_a_clear(store: Any) -> None:
    sent = await store.append([_event("a"), _event("b")])
    await store.clear("s1")
    [after] = await store.append([_event("c")])
    assert (after.epoch, after.seq) > (sent[-1].epoch, sent[-1].seq)
