"""A view refuses the stored ids of owners: it reads, changes and deletes nothing of theirs."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import ALL_AGENTS, AgentId, ChatMessage, Document, Entity, Event, State
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.errors import InvalidInputError
from holdfast.runtime.cleanup import clear_context
from holdfast.values.cursors import encode_cursor
from holdfast.values.owners import MemoryScope, owned_id
from holdfast.values.states import StatePatch

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
STORED = owned_id("ana", "s1")
PLANNER = owned_id("ana", "planner")
NOTES = owned_id("ana", "notes")
EVER = (NOON - timedelta(days=1), NOON + timedelta(days=1))


async def _publish(view: State) -> None:
    await view.channel(owned_id("ana", "news")).publish({"gold": 1})


CALLS: dict[str, Callable[[State], Awaitable[Any]]] = {
    "history": lambda one: one.history.get_messages(PLANNER, session_id="s1"),
    "history of a session": lambda one: one.history.get_messages("planner", session_id=STORED),
    "pop": lambda one: one.history.pop(PLANNER, session_id="s1"),
    "pop of a session": lambda one: one.history.pop("planner", session_id=STORED),
    "replace": lambda one: one.history.replace_tail(
        "planner", session_id=STORED, after_seq=0, messages=[], expected_last_seq=1
    ),
    "events": lambda one: one.episodes.get(STORED, ["e1"]),
    "fork": lambda one: one.episodes.fork(STORED, "mine"),
    "delete session": lambda one: one.episodes.delete_session(STORED),
    "sessions": lambda one: one.episodes.list_sessions(PLANNER),
    "patch": lambda one: one.episodes.append([], patches=[StatePatch(STORED, {"gold": 2})]),
    "states": lambda one: one.short_term.get_many(["mine", STORED]),
    "recent": lambda one: one.episodes.recent(PLANNER),
    "recall": lambda one: one.episodes.recall(PLANNER, "gold"),
    "session": lambda one: one.episodes.get_session(STORED),
    "append": lambda one: one.episodes.append([Event(AgentId.parse(PLANNER), "s", "note", {})]),
    "clear": lambda one: one.episodes.clear(STORED),
    "state": lambda one: one.short_term.get_state(STORED),
    "set state": lambda one: one.short_term.set_state(STORED, {"gold": "gone"}),
    "facts": lambda one: one.long_term.search(PLANNER, "gold"),
    "list of facts": lambda one: one.long_term.list(PLANNER),
    "update of a fact": lambda one: one.long_term.update(PLANNER, "m1", "gold"),
    "namespaces of facts": lambda one: one.long_term.namespaces(PLANNER),
    "documents": lambda one: one.vectors.get(["d1"], collection=NOTES),
    "collection": lambda one: one.vectors.delete_collection(NOTES),
    "entity": lambda one: one.graph.delete_entity(owned_id("ana", "ana")),
    "neighbours": lambda one: one.graph.get_neighbors(owned_id("ana", "ana")),
    "boards": lambda one: one.boards.get_by_conversation(STORED),
    "thread": lambda one: one.checkpoints.get(owned_id("ana", "t1")),
    "copy": lambda one: one.checkpoints.copy_thread(owned_id("ana", "t1"), "mine"),
    "threads": lambda one: one.checkpoints.delete_threads([owned_id("ana", "t1")]),
    "channel": _publish,
    "context": lambda one: clear_context(one, STORED),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("owner", "memory"),
    [("", "owner"), ("", "shared"), ("bob", "owner"), ("bob", "shared")],
    ids=["nobody", "nobody-shared", "bob", "bob-shared"],
)
async def test_a_view_refuses_the_stored_ids_of_an_owner(
    state: State, owner: str, memory: Any, call: str
) -> None:
    ana = state.for_owner("ana")
    await ana.history.append("planner", ChatMessage.user("gold"), session_id="s1")
    await ana.short_term.set_state("s1", {"gold": 1})
    document = Document.from_text("gold", id="d1", embedding=[1.0, 0.0])
    await ana.vectors.upsert([document], collection="notes")
    await ana.graph.add_entities([Entity("Person", {"gold": 1}, "ana")])
    value = TypedBytes("json", b"1")
    step = Checkpoint("t1", "", "1", None, value, value, {}, {}, {}, ())
    await ana.checkpoints.put(step, new_values={})
    with pytest.raises(InvalidInputError):
        await CALLS[call](state.for_owner(owner, memory=memory))
    assert len(await ana.history.get_messages("planner", session_id="s1")) == 1
    assert await ana.short_term.get_state("s1") == {"gold": 1}
    assert len(await ana.vectors.get(["d1"], collection="notes")) == 1
    assert len((await ana.graph.get_neighbors("ana")).entities) == 1
    assert await ana.checkpoints.get("t1") is not None


async def test_pages_of_a_shared_memory_miss_nothing(state: State) -> None:
    owners = [state.for_owner(name, memory="shared") for name in ("ana", "bob", "cid", "zed")]
    for at, one in enumerate(owners):
        for number in range(2):
            event = Event(AgentId.parse("guide"), "s1", "note", {"n": [at, number]})
            await one.episodes.append([dataclasses.replace(event, occurred_at=NOON)])
    for one in owners:
        found: list[Event] = []
        for _ in range(9):
            cursor = found[-1].cursor if found else None
            found += await one.episodes.between("guide", *EVER, limit=1, cursor=cursor)
        assert len({tuple(each.payload["n"]) for each in found}) == len(found) == 8


async def test_a_forged_position_is_no_error_of_the_driver(state: State) -> None:
    for epoch in ("2147483648", "9" * 18, "\u0663"):
        with pytest.raises(InvalidInputError, match="cursor"):
            await state.episodes.between(
                "guide", *EVER, cursor=encode_cursor(NOON, "s1", epoch, "1")
            )


async def test_all_agents_of_an_owner_are_in_all_of_its_sessions(state: State) -> None:
    scopes: tuple[MemoryScope, ...] = ("owner", "shared")
    for memory in scopes:
        view = state.for_owner("ana", memory=memory)
        event = Event(AgentId.parse("guide"), "s1", "note", {"by": memory})
        await view.episodes.append([dataclasses.replace(event, occurred_at=NOON)])
    log = state.for_owner("ana").episodes
    for found in (
        await log.recent(ALL_AGENTS),
        await log.recent(ALL_AGENTS, session_id="s1"),
        await log.between(ALL_AGENTS, *EVER),
    ):
        assert sorted(one.payload["by"] for one in found) == ["owner", "shared"]
