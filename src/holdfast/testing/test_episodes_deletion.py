"""The promises of ``EpisodicMemory``: single events are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")


def _event(note: str, *, session: str = "s1") -> Event:
    return Event(ANA, session, "observation", {"note": note}, id=note.replace(" ", "-"))


def _notes(events: list[Event]) -> list[str]:
    return [event.payload["note"] for event in events]


async def test_delete_events_removes_the_events_with_these_ids_and_says_how_many_were_there(
    store: Any,
) -> None:
    await store.append([_event(note) for note in "abc"])
    assert await store.delete_events("s1", ["b", "b", "unknown"]) == 1
    assert _notes(await store.recent(ANA, session_id="s1")) == ["a", "c"]
    assert await store.get("s1", ["b"]) == []
    assert await store.delete_events("s1", ["b"]) == 0
    assert await store.delete_events("s1", []) == 0
    assert await store.delete_events("s1", ["a", "c"]) == 2
    assert await store.recent(ANA, session_id="s1") == []


async def test_deleted_events_are_never_recalled_nor_in_a_transcript(harness: Harness) -> None:
    store, history = harness.store(CONTRACT), harness.store("history")
    said = ChatMessage.user("the tide is high")
    await store.append([Event.of_message(ANA, "s1", said), _event("tide table")])
    [kept] = await store.append([_event("tide of May")], embeddings=[[1.0, 0.0]])
    assert len(await store.recall(ANA, "tide")) == 3
    await store.append([_event("tide unread")])
    assert await store.delete_events("s1", [said.id, "tide-table", "tide-unread"]) == 3
    assert [hit.event.id for hit in await store.recall(ANA, "tide")] == [kept.id]
    assert await history.get_messages(ANA, session_id="s1") == []
    assert await store.delete_events("s1", [kept.id]) == 1
    assert await store.recall(ANA, "tide") == await store.recall(ANA, [1.0, 0.0]) == []


async def test_sequence_numbers_are_never_reused_after_delete_events(store: Any) -> None:
    before = await store.append([_event(note) for note in "ab"])
    await store.delete_events("s1", ["a", "b"])
    [after] = await store.append([_event("a")])
    assert (after.epoch, after.seq) > (before[-1].epoch, before[-1].seq)


async def test_delete_events_of_another_session_or_owner_removes_nothing(
    harness: Harness, store: Any
) -> None:
    await store.append([_event("a"), _event("a", session="s2")])
    assert await store.delete_events("s2", ["b"]) == await store.delete_events("s3", ["a"]) == 0
    ana, ben = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "ben"))
    await ana.append([_event("a")])
    assert await ben.delete_events("s1", ["a"]) == 0
    elsewhere = harness.store(CONTRACT, tenant="elsewhere")
    assert await elsewhere.delete_events("s1", ["a"]) == 0
    assert await store.delete_events("s2", ["a"]) == 1
    assert _notes(await store.recent(ANA, session_id="s1")) == ["a"]
    assert _notes(await ana.recent(ANA, session_id="s1")) == ["a"]


async def test_delete_events_of_more_than_1000_ids_is_refused(store: Any) -> None:
    await store.append([_event("a")])
    with pytest.raises(InvalidInputError) as caught:
        await store.delete_events("s1", ["a", *map(str, range(1000))])
    assert caught.value.field == "ids"
    assert await store.delete_events("s1", ["a", *map(str, range(999))]) == 1
