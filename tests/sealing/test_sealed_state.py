"""What a sealed state stores, who can read it, and what it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import AgentId, ChatMessage, Document, Entity, Event, Recalled, Relationship, State
from holdfast.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.errors import InvalidInputError, NotSupportedError, SealedError
from holdfast.items import ItemKey, ItemPut
from holdfast.wiring.connections import ATTRIBUTES
from holdfast.wiring.sealing import is_refused, refused
from tests.sealing.conftest import RING, Place

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = "planner/a1"
CANARY = "zanzibarquokka"
WHEN = datetime(2030, 5, 8, 12, tzinfo=UTC)


async def fill(state: State) -> str:
    """Write the canary into every content of every sealed contract; the id of a board."""
    agent = AgentId.parse(AGENT)
    await state.history.append(agent, ChatMessage.user(f"about {CANARY}?"), session_id="s1")
    await state.episodes.append(
        [Event(agent, "s1", "decision", {CANARY: CANARY}, id="e1", occurred_at=WHEN)]
    )
    await state.episodes.start_session(agent, "s2", metadata={CANARY: CANARY})
    await state.short_term.set_state("s1", {CANARY: [CANARY]})
    await state.short_term.update_state("s1", {"step": CANARY})
    board = await state.boards.create_task_list("c1", [CANARY], agent_label=CANARY)
    await state.boards.update_status(board.id, board.tasks[0].id, "blocked", CANARY)
    value = TypedBytes(CANARY, CANARY.encode())
    await state.checkpoints.put(
        Checkpoint("t1", "", "c1", None, value, value, {CANARY: CANARY}, {"m": "1"}),
        new_values={"m": value},
    )
    await state.checkpoints.put_writes("t1", "", "c1", [Write("w1", 0, "m", value)])
    await state.items.put_many([ItemPut(("users",), "ana", {CANARY: {"city": CANARY}})])
    await state.channel("alerts").publish({CANARY: CANARY}, id="p1")
    await state.graph.add_entities(
        [Entity("Person", {"name": CANARY}, "ravi"), Entity("Person", {}, "x")]
    )
    await state.graph.add_relationships([Relationship("ravi", "x", "knows", {"a": CANARY}, "r1")])
    await state.long_term.save(
        agent,
        f"of {CANARY}",
        topic=CANARY,
        source=CANARY,
        metadata={CANARY: CANARY},
        entities=["ravi"],
        idempotency_key="k1",
    )
    return board.id


async def seen(state: State, board: str) -> dict[str, Any]:
    """What the same state reads."""
    listed = [one async for one in state.checkpoints.list(labels={CANARY: CANARY})]
    return {
        "history": [one.text for one in await state.history.get_messages(AGENT, session_id="s1")],
        "events": [one.payload for one in await state.episodes.get("s1", ["e1"])],
        "session": [one and one.metadata for one in [await state.episodes.get_session("s2")]],
        "state": await state.short_term.get_state("s1"),
        "board": await state.boards.get_task_list(board),
        "checkpoint": await state.checkpoints.get("t1"),
        "labels": [one.labels for one in listed],
        "items": [
            one and one.value for one in await state.items.get_many([ItemKey(("users",), "ana")])
        ],
        "channel": [one.event for one in await state.channel("alerts").read()],
        "graph": await state.graph.get_neighbors("ravi"),
        "named": [one.id for one in await state.graph.find_entities([CANARY.upper()])],
        "facts": await state.long_term.list(AGENT),
        "topic": len(await state.long_term.list(AGENT, topic=CANARY)),
        "found": [one.content for one in await state.long_term.search(AGENT, CANARY)],
        "recalled": [hit.event.id for hit in await state.episodes.recall(AGENT, CANARY)],
    }


async def test_nothing_of_the_content_is_in_any_table(place: Place) -> None:
    state = await place.open()
    board = await fill(state)
    await state.ops.index_pending()
    found = await seen(state, board)
    assert found["events"] == [{CANARY: CANARY}]
    assert found["labels"] == [{CANARY: CANARY}]
    assert found["topic"] == 1
    assert found["named"] == ["ravi"]
    assert found["graph"].relationships[0].properties == {"a": CANARY}
    assert found["found"] == [f"of {CANARY}"]
    assert "e1" in found["recalled"]
    raw = await place.dump()
    assert "e1" in raw
    assert CANARY not in raw
    assert CANARY.encode().hex() not in raw


async def test_the_same_content_is_in_the_tables_of_a_state_that_is_not_sealed(
    place: Place,
) -> None:
    state = await place.open(None)
    await fill(state)
    raw = await place.dump()
    assert raw.count(CANARY) + raw.count(CANARY.encode().hex()) >= 15


async def test_another_process_with_the_keys_reads_the_same(place: Place) -> None:
    first = await place.open()
    board = await fill(first)
    assert await seen(await place.open(), board) == await seen(first, board)


READS: dict[str, Callable[[State, str], Awaitable[Any]]] = {
    "history": lambda state, _: state.history.get_messages(AGENT, session_id="s1"),
    "events": lambda state, _: state.episodes.recent(AGENT, session_id="s1"),
    "session": lambda state, _: state.episodes.get_session("s2"),
    "state": lambda state, _: state.short_term.get_state("s1"),
    "states": lambda state, _: state.short_term.get_many(["s1"]),
    "board": lambda state, board: state.boards.get_task_list(board),
    "checkpoint": lambda state, _: state.checkpoints.get("t1"),
    "items": lambda state, _: state.items.get_many([ItemKey(("users",), "ana")]),
    "channel": lambda state, _: state.channel("alerts").read(),
    "facts": lambda state, _: state.long_term.list(AGENT),
    "graph": lambda state, _: state.graph.get_neighbors("ravi"),
    "memory": lambda state, _: state.memory(AGENT, session_id="s1").hydrate("tides"),
}


async def test_a_state_without_keys_refuses_every_sealed_value_and_names_the_setting(
    place: Place,
) -> None:
    board = await fill(await place.open())
    plain = await place.open(None)
    for name, read in READS.items():
        with pytest.raises(SealedError, match="HOLDFAST_SEAL"):
            await read(plain, board)
        assert name


async def test_another_key_under_the_same_id_opens_nothing(place: Place) -> None:
    await fill(await place.open())
    other = await place.open(KeyRing({"k1": bytes(32)}, name="another"))
    with pytest.raises(SealedError, match="another"):
        await other.short_term.get_state("s1")
    missing = await place.open(KeyRing({"k2": bytes(32)}, name="another"))
    with pytest.raises(SealedError, match="the key 'k1' is missing"):
        await missing.short_term.get_state("s1")


async def test_what_was_stored_before_stays_readable_and_is_replaced_by_sealed_values(
    place: Place,
) -> None:
    plain = await place.open(None)
    board = await fill(plain)
    sealed = await place.open()
    was = await seen(plain, board)
    # Old rows have no digests: what is found by them is found only in what is written from now on.
    by_digest = {"recalled", "labels", "topic", "found", "named"}
    now = await seen(sealed, board)
    assert {name: one for name, one in now.items() if name not in by_digest} == {
        name: one for name, one in was.items() if name not in by_digest
    }
    await sealed.short_term.update_state("s1", {CANARY: 2}, delete_keys=["step"])
    assert await sealed.short_term.get_state("s1") == {CANARY: 2}
    # A retry of what was stored before the tenant was sealed is the same event.
    agent = AgentId.parse(AGENT)
    event = Event(agent, "s1", "decision", {CANARY: CANARY}, id="e1", occurred_at=WHEN)
    [again] = await sealed.episodes.append([event])
    assert again.seq == 2
    assert len(await sealed.episodes.get("s1", ["e1"])) == 1


async def test_a_contract_that_has_no_layer_is_refused() -> None:
    assert is_refused("scratchpad")
    assert "scratchpad" in str(refused("scratchpad"))
    assert [one for one in ATTRIBUTES if is_refused(one)] == []


async def test_vectors_are_refused_unless_they_may_be_stored_plain(place: Place) -> None:
    state, plain = await place.open(), await place.open(seal_vectors="plain")
    put = [ItemPut(("notes",), "n1", {"a": 1}, vectors=[[1.0, 0.0]])]
    with pytest.raises(NotSupportedError, match="HOLDFAST_SEAL_VECTORS"):
        await state.items.put_many(put)
    with pytest.raises(NotSupportedError, match="HOLDFAST_SEAL_VECTORS"):
        await state.episodes.recall(AGENT, [1.0, 0.0])
    document = Document.from_text(CANARY, id="d1", embedding=[1.0, 0.0], metadata={"by": CANARY})
    with pytest.raises(NotSupportedError, match="HOLDFAST_SEAL_VECTORS"):
        await state.vectors.add([document])
    await plain.vectors.add([document])
    [near] = await plain.vectors.search([1.0, 0.0], filter={"by": CANARY})
    assert (near.content, near.metadata) == (document.content, document.metadata)
    assert await plain.vectors.get(["d1"]) == [document]
    with pytest.raises(SealedError, match="HOLDFAST_SEAL"):
        await (await place.open(None)).vectors.get(["d1"])
    assert CANARY not in await place.dump()
    await plain.items.put_many(put)
    [hit] = await plain.items.search(("notes",), vector=[1.0, 0.0])
    assert (hit.item.value, hit.score) == ({"a": 1}, 1.0)


async def test_filters_compare_for_equality_and_others_are_refused(place: Place) -> None:
    state = await place.open()
    values: list[dict[str, Any]] = [
        {"n": 1, "tags": ["a", "b"]},
        {"n": 1.0, "by": {"x": "ana"}},
        {},
    ]
    await state.items.put_many(
        [ItemPut(("notes",), f"n{at}", value) for at, value in enumerate(values)]
    )

    async def found(wanted: dict[str, Any]) -> set[str]:
        return {hit.item.key for hit in await state.items.search(("notes",), filter=wanted)}

    assert await found({"n": 1}) == {"n0", "n1"}
    assert await found({"n": {"$in": [1, 2]}}) == {"n0", "n1"}
    assert await found({"n": True}) == set()
    assert await found({"n": "1"}) == set()
    assert await found({"tags": "b"}) == {"n0"}
    assert await found({"by.x": "ana"}) == {"n1"}
    assert await found({"by": {"$exists": True}}) == {"n1"}
    assert await found({"n": {"$ne": 1}}) == {"n2"}
    for wanted in ({"n": {"$gt": 0}}, {"tags": {"$equals": ["a", "b"]}}):
        with pytest.raises(NotSupportedError, match="digests"):
            await found(wanted)
    await state.episodes.append([Event(AgentId.parse(AGENT), "s1", "note", {"n": 1})])
    assert len(await state.episodes.recent(AGENT, where={"n": 1.0})) == 1
    with pytest.raises(NotSupportedError, match=r"\$lt"):
        await state.episodes.recent(AGENT, where={"n": {"$lt": 3}})


async def test_nobody_can_store_what_looks_sealed(place: Place) -> None:
    forged = {"holdfast.sealed": "AQ=="}
    for state in (await place.open(), await place.open(None)):
        with pytest.raises(InvalidInputError, match="reserved"):
            await state.short_term.set_state("s1", {"a": forged})
        with pytest.raises(InvalidInputError, match="reserved"):
            await state.episodes.append([Event(AgentId.parse(AGENT), "s1", "note", forged)])
        with pytest.raises(InvalidInputError, match="reserved"):
            await state.items.put_many([ItemPut(("notes",), "n1", forged)])
        with pytest.raises(InvalidInputError, match="reserved"):
            await state.channel("alerts").publish(forged)
        with pytest.raises(InvalidInputError, match="reserved"):
            await state.boards.create_task_list("c1", ["holdfast.sealed:AQ=="])
        assert await state.short_term.get_state("s1") == {}
    assert "AQ==" not in await place.dump()


async def test_owners_and_tenants_have_keys_of_their_own(place: Place) -> None:
    state = await place.open()
    ana, ben = state.for_owner("ana"), state.for_owner("ben")
    acme = state.for_tenant("acme")
    for view in (state, ana, ben, acme):
        await view.short_term.set_state("s1", {"step": 1})
    assert await ana.short_term.get_state("s1") == {"step": 1}
    raw = await place.dump()
    assert raw.count("k1") >= 6  # four subjects, and an index in each of two tenants


async def test_a_recall_has_the_same_hits_and_scores_as_an_unsealed_one(place: Place) -> None:
    texts = [
        "Which tide is low on 8 May?",
        "The low one, at noon.",
        "Ravi's team sails in May; the tides were rising",
        "? the",
        "低い潮 at St_Malo",
        "Nothing to see",
    ]
    questions = [
        "low tide",
        "Ravi",
        "what happened on 8 May 2030?",
        "潮",
        "the",
        "noon?",
        "sailing",
    ]
    found = []
    for tenant, seal in (("plain", None), ("sealed", RING)):
        state = (await place.open(seal)).for_tenant(tenant)
        for at, text in enumerate(texts):
            message = ChatMessage.user(text, name=("Ana", "Ravi B")[at % 2], id=f"m{at}")
            event = Event.of_message(AgentId.parse(AGENT), "s1", message)
            await state.episodes.append([replace(event, occurred_at=WHEN)])
            await state.long_term.save(AGENT, text)
        hits = [await state.episodes.recall(AGENT, one, explain=True) for one in questions]
        facts = [await state.long_term.search(AGENT, one) for one in questions]
        found.append(
            (
                [
                    [(h.event.id, h.score, h.scores, h.found_by, _words(h)) for h in some]
                    for some in hits
                ],
                [sorted((one.content, one.score) for one in some) for some in facts],
            )
        )
    plain, sealed = found
    assert sum(map(len, plain[0])) >= 10
    assert sealed == plain


def _words(hit: Recalled) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert hit.explanation is not None
    return hit.explanation.words, hit.explanation.borrowed
