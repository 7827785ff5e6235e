"""What every ``LongTermMemory`` promises about superseding and about saving again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.long_term_memory import LongTermMemory
from holdfast.testing.harness import Harness
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.facts import Memory
from holdfast.values.graph import Entity
from holdfast.values.identity import AgentId

CONTRACT = "long_term"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN, BEN = AgentId("helper", "ann"), AgentId("helper", "ben")


async def _contents(store: LongTermMemory, query: str = "", **options: Any) -> list[str]:
    found = await store.search(options.pop("agent", ANN), query, limit=100, **options)
    return [memory.content for memory in found]


async def _got(store: LongTermMemory, id: str, **options: Any) -> Memory:
    memory = await store.get(ANN, id, **options)
    assert memory is not None
    return memory


async def test_a_superseded_memory_is_left_out_of_search(store: LongTermMemory) -> None:
    old = await store.save(ANN, "Ravi lives in Pune")
    await store.save(ANN, "Ravi lives in Goa", supersedes=old)
    assert await _contents(store, "where does Ravi live") == ["Ravi lives in Goa"]
    assert await _contents(store, "Pune") == []
    assert await _contents(store) == ["Ravi lives in Goa"]


async def test_a_superseded_memory_is_still_returned_by_get_with_what_superseded_it(
    store: LongTermMemory,
) -> None:
    first = await store.save(ANN, "one")
    second = await store.save(ANN, "two", supersedes=first)
    third = await store.save(ANN, "three", supersedes=second)
    chain = [(await _got(store, one)).superseded_by for one in (first, second, third)]
    assert chain == [second, third, None]
    assert (await _got(store, first)).content == "one"


async def test_superseding_an_unknown_memory_is_refused_and_nothing_is_written(
    store: LongTermMemory,
) -> None:
    elsewhere = await store.save(ANN, "elsewhere", namespace="other")
    theirs = await store.save(BEN, "theirs")
    for unknown in ("nobody", elsewhere, theirs):
        with pytest.raises(NotFoundError) as refused:
            await store.save(ANN, "a fact", supersedes=unknown)
        assert (refused.value.kind, refused.value.key) == ("memory", unknown)
    assert await _contents(store) == []
    assert (await _got(store, elsewhere, namespace="other")).superseded_by is None


async def test_superseding_a_superseded_memory_is_a_conflict_and_nothing_is_written(
    store: LongTermMemory,
) -> None:
    old = await store.save(ANN, "old")
    new = await store.save(ANN, "new", supersedes=old)
    with pytest.raises(ConflictError) as refused:
        await store.save(ANN, "newer", supersedes=old)
    assert refused.value.key == old
    assert await _contents(store) == ["new"]
    assert (await _got(store, old)).superseded_by == new


async def test_of_concurrent_saves_that_supersede_the_same_memory_one_wins(
    harness: Harness,
) -> None:
    graph = harness.store("graph")
    await graph.add_entities([Entity("Person", {}, "ravi")])
    store = harness.store(CONTRACT, graph=graph)
    old = await store.save(ANN, "old")
    outcomes = await asyncio.gather(
        *(store.save(ANN, f"new {at}", supersedes=old, entities=["ravi"]) for at in range(10)),
        return_exceptions=True,
    )
    [winner] = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 9
    assert (await _got(store, old)).superseded_by == winner
    assert len(await _contents(store)) == 1


async def test_a_memory_stays_superseded_when_what_superseded_it_is_deleted(
    store: LongTermMemory,
) -> None:
    old = await store.save(ANN, "old")
    new = await store.save(ANN, "new", supersedes=old)
    await store.delete(ANN, new)
    assert await _contents(store) == []
    assert (await _got(store, old)).superseded_by == new


async def test_a_save_with_the_same_idempotency_key_and_content_gives_the_same_id(
    store: LongTermMemory,
) -> None:
    old = await store.save(ANN, "old")
    options: dict[str, Any] = {"metadata": {"n": 1}, "supersedes": old, "idempotency_key": "k1"}
    saved = await store.save(ANN, "a fact", **options)
    assert await store.save(ANN, "a fact", **options) == saved
    assert await _contents(store) == ["a fact"]
    assert await store.save(ANN, "a fact", idempotency_key="k2") != saved
    assert await store.save(BEN, "b fact", idempotency_key="k1") != saved
    assert await store.save(ANN, "b fact", namespace="n", idempotency_key="k1") != saved


async def test_a_save_with_the_same_idempotency_key_and_other_content_is_a_conflict(
    store: LongTermMemory,
) -> None:
    await store.save(ANN, "a fact", idempotency_key="k1")
    others: list[dict[str, Any]] = [{"metadata": {"n": 1}}, {"topic": "t"}, {"ttl_seconds": 60}]
    with pytest.raises(ConflictError):
        await store.save(ANN, "another fact", idempotency_key="k1")
    for other in others:
        with pytest.raises(ConflictError):
            await store.save(ANN, "a fact", idempotency_key="k1", **other)
    assert await _contents(store) == ["a fact"]


async def test_an_idempotency_key_is_free_again_when_its_memory_is_gone(
    harness: Harness, store: LongTermMemory
) -> None:
    first = await store.save(ANN, "first", idempotency_key="k1")
    await store.delete(ANN, first)
    await store.save(ANN, "second", idempotency_key="k1", ttl_seconds=60)
    await harness.elapse(60)
    await store.save(ANN, "third", idempotency_key="k1")
    await store.clear(ANN)
    await store.save(ANN, "fourth", idempotency_key="k1")
    assert await _contents(store) == ["fourth"]


async def test_concurrent_saves_with_the_same_idempotency_key_are_one_memory(
    harness: Harness,
) -> None:
    graph = harness.store("graph")
    await graph.add_entities([Entity("Person", {}, "ravi")])
    store = harness.store(CONTRACT, graph=graph)
    ids = await asyncio.gather(
        *(store.save(ANN, "a fact", idempotency_key="k1", entities=["ravi"]) for _ in range(20))
    )
    assert len(set(ids)) == 1
    assert await _contents(store) == ["a fact"]
