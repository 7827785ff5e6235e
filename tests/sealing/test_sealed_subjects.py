"""What is about a person is sealed with the key of that person, whoever owns it."""

from __future__ import annotations

import pytest

from holdfast.errors import SealedError
from tests.sealing.conftest import Place

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = "writer"


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
    # A row of a backup from before the erasure opens for nobody.
    seal = state._connections.seal("default")
    sealed = [text for text in raw.replace('"', " ").replace("'", " ").split() if "sealed:" in text]
    gone = 0
    for text in sealed:
        try:
            await seal.opener(text[text.index("holdfast.sealed:") :].rstrip(",)"))
        except SealedError:
            gone += 1
    assert gone >= 4
