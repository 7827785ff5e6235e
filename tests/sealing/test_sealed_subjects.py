"""What is about a person is sealed with the key of that person, whoever owns it."""

from __future__ import annotations

import re

import pytest

from holdfast import Document, State
from holdfast.errors import SealedError
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


async def _unreadable(state: State, raw: str) -> int:
    """How many sealed texts of rows from before an erasure open for nobody."""
    seal, gone = state._connections.seal("default"), 0
    for box in re.findall(r"holdfast\.sealed:[A-Za-z0-9+/=]+", raw):
        try:
            await seal.opener(box)
        except SealedError:
            gone += 1
    return gone
