"""What is about a person is sealed with the key of that person, whoever owns it."""

from __future__ import annotations

import re

import pytest

from holdfast import ChatMessage, Document, Entity, Relationship, State
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.errors import SealedError
from holdfast.items import ItemPut
from holdfast.sealing.cipher import Place as SealedPlace
from holdfast.values.owners import owned_id
from tests.sealing.conftest import Place

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = "writer"
NEAR = [1.0, 0.5]


async def test_a_fact_about_a_person_does_not_open_without_the_key_of_that_person(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    ben = state.for_owner("ben")
    first = await ben.long_term.save(
        AGENT, "ana likes tea", subject="ana", metadata={"n": 1}, source="s1", topic="drinks"
    )
    newer = await ben.long_term.update(AGENT, first, "ana likes coffee", idempotency_key="k")
    assert newer == await ben.long_term.update(
        AGENT, first, "ana likes coffee", idempotency_key="k"
    )
    await ben.long_term.save(AGENT, "ben likes tea", topic="drinks")
    raw = await place.dump()
    assert "likes" not in raw
    for reader in (state, await place.open()):
        view = reader.for_owner("ben").long_term
        [found] = await view.search(AGENT, "coffee")
        assert (found.content, found.metadata, found.topic, found.source, found.subject) == (
            *("ana likes coffee", {"n": 1}, "drinks", "s1", "ana"),
        )
        assert len(await view.search(AGENT, "likes", topic="drinks")) == 2

    storage = state._connections.data_keys
    assert storage is not None
    numbers = {one.subject: one.number for one in await storage("default").page(0, 100)}
    report = await state.erase(subject="ana")
    assert report.counts == {"facts": 2}
    assert report.receipt is not None
    assert report.receipt["data_keys"] == [numbers["ana"]]
    assert [one.content for one in await ben.long_term.list(AGENT, superseded=True)] == [
        "ben likes tea"
    ]
    assert await _unreadable(state, raw) >= 4


async def test_a_document_about_a_person_does_not_open_without_the_key_of_that_person(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open(seal_vectors="plain")
    ben = state.for_owner("ben").vectors
    await ben.add(
        [
            Document.from_text(
                "ana likes tea", id="d1", embedding=NEAR, metadata={"n": 1}, subject="ana"
            ),
            Document.from_text("ben likes tea", id="d2", embedding=NEAR),
        ]
    )
    raw = await place.dump()
    assert "likes" not in raw
    [about, other] = await ben.get(["d1", "d2"])
    assert (about.text, about.metadata, about.subject) == ("ana likes tea", {"n": 1}, "ana")
    assert (other.text, other.subject) == ("ben likes tea", "")
    assert {one.text for one in await ben.search(NEAR)} == {about.text, other.text}
    [narrowed] = await ben.search(NEAR, filter={"n": 1})
    assert (narrowed.text, narrowed.subject) == ("ana likes tea", "ana")
    report = await state.erase(subject="ana")
    assert report.counts == {"collections": 1}
    assert [one.text for one in await ben.search(NEAR)] == ["ben likes tea"]
    assert await _unreadable(state, raw) >= 1


async def test_a_session_about_a_person_does_not_open_without_the_key_of_that_person(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state, second = await place.open(), await place.open()
    empty = TypedBytes("json", b"{}")
    for view in (state.for_owner("ben"), second):
        await view.episodes.start_session(AGENT, "s1", metadata={"by": "likes"}, subject="ana")
        await view.episodes.start_session(AGENT, "s2", metadata={"by": "likes"})
    # Another process writes, and reads whom the session is about.
    for view in (second.for_owner("ben"), state):
        for session in ("s1", "s2"):
            message = ChatMessage.user("she likes tea", id="m1")
            await view.history.append(AGENT, message, session_id=session)
            await view.history.append(AGENT, message, session_id=session)
            await view.short_term.set_state(session, {"drink": "likes tea"})
            await view.checkpoints.put(
                Checkpoint(
                    *(session, "", "1", None, empty, empty),
                    versions={"x": "1"},
                    labels={"by": "likes"},
                ),
                new_values={"x": TypedBytes("text", b"likes tea")},
            )
        await view.episodes.fork("s1", "s3")
    raw = await place.dump()
    assert "likes" not in raw
    for view in (await place.open(), (await place.open()).for_owner("ben")):
        for session in ("s1", "s2", "s3"):
            [said] = await view.history.get_messages(AGENT, session_id=session)
            found = await view.episodes.get_session(session)
            assert (said.text, found and found.metadata) == ("she likes tea", {"by": "likes"})
        assert len(await view.episodes.recall(AGENT, "tea")) == 3
        assert await view.short_term.get_state("s1") == {"drink": "likes tea"}
        assert len([one async for one in view.checkpoints.list(labels={"by": "likes"})]) == 2

    storage = state._connections.data_keys
    assert storage is not None
    numbers = {one.subject: one.number for one in await storage("default").page(0, 100)}
    report = await state.erase(subject="ana")
    assert report.counts == {"sessions": 4, "states": 2, "threads": 2}
    assert report.receipt is not None
    assert report.receipt["data_keys"] == [numbers["ana"]]
    for view in (state, state.for_owner("ben")):
        assert [hit.event.session_id for hit in await view.episodes.recall(AGENT, "tea")] == ["s2"]
        assert await view.short_term.get_state("s2") == {"drink": "likes tea"}
    # Of each owner an event, the metadata and the state; a fork has copies of the first two.
    gone = {one for one in re.findall(_BOX, raw) if await _is_unreadable(state, one)}
    assert len(gone) >= 6
    # Later writes under the id are about its owner again.
    await state.history.append(AGENT, ChatMessage.user("new"), session_id="s1")
    [said] = await state.history.get_messages(AGENT, session_id="s1")
    assert said.text == "new"


async def test_an_item_about_a_person_does_not_open_without_the_key_of_that_person(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    ben = state.for_owner("ben").items
    await ben.put_many(
        [
            ItemPut(("n",), "a", {"by": "likes"}, subject="ana"),
            ItemPut(("n",), "b", {"by": "likes"}),
        ]
    )
    raw = await place.dump()
    assert "likes" not in raw
    hits = await (await place.open()).for_owner("ben").items.search((), filter={"by": "likes"})
    assert sorted((hit.item.key, hit.item.subject) for hit in hits) == [("a", "ana"), ("b", "")]
    assert {str(hit.item.value) for hit in hits} == {"{'by': 'likes'}"}
    assert (await state.erase(subject="ana")).counts == {"items": 1}
    assert [hit.item.key for hit in await ben.search(())] == ["b"]
    gone = {one for one in re.findall(_BOX, raw) if await _is_unreadable(state, one)}
    assert len(gone) == 1


async def test_a_graph_about_a_person_does_not_open_without_the_key_of_that_person(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    graph = state.for_owner("ben").graph
    await graph.add_entities(
        [Entity("person", {"name": "likes"}, "a", "ana"), Entity("person", {"name": "likes"}, "b")]
    )
    await graph.add_relationships([Relationship("b", "b", "is", {"by": "likes"}, "r", "ana")])
    raw = await place.dump()
    assert "likes" not in raw
    view = (await place.open()).for_owner("ben").graph
    assert [one.subject for one in await view.find_entities(["likes"])] == ["ana", ""]
    assert [one.properties for one in await view.list_relationships("b")] == [{"by": "likes"}]
    assert (await state.erase(subject="ana")).counts == {"entities": 1, "relationships": 1}
    assert [one.properties for one in await graph.list_entities()] == [{"name": "likes"}]
    gone = {one for one in re.findall(_BOX, raw) if await _is_unreadable(state, one)}
    assert len(gone) == 2


async def test_a_sealed_event_about_a_person_opens_only_for_its_owner(place: Place) -> None:
    state = await place.open()
    ben, carl = state.for_owner("ben"), state.for_owner("carl")
    for view in (ben, carl):
        await view.episodes.start_session(AGENT, "s1", subject="ana")
    await ben.history.append(AGENT, ChatMessage.user("of ben", id="m1"), session_id="s1")
    sealing, place_of = state._connections.seal("default"), SealedPlace("log", "m1", "body")
    sealer = await sealing.session_sealer(owned_id("ben", "s1"))
    assert sealer is not None
    box = sealer.json(place_of, '{"of":"ben"}')
    opener = await sealing.opener(box)
    assert opener.json_text("ben", place_of, box) == '{"of":"ben"}'
    for owner in ("carl", "ana", ""):
        with pytest.raises(SealedError, match="does not open here"):
            opener.json_text(owner, place_of, box)


_BOX = r"holdfast\.sealed\W{1,9}([A-Za-z0-9+/=]+)"


async def _is_unreadable(state: State, box: str) -> bool:
    try:
        await state._connections.seal("default").opener({"holdfast.sealed": box})
    except SealedError as error:
        return "destroyed" in str(error)
    return False


async def _unreadable(state: State, raw: str) -> int:
    """How many sealed texts of rows from before an erasure open for nobody."""
    seal, gone = state._connections.seal("default"), 0
    for box in re.findall(r"holdfast\.sealed:[A-Za-z0-9+/=]+", raw):
        try:
            await seal.opener(box)
        except SealedError:
            gone += 1
    return gone
