"""What every ``FactStore`` promises about listing, updating and its namespaces."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.long_term_memory import FactStore
from holdfast.testing.harness import Harness
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.facts import Memory
from holdfast.values.graph import Entity
from holdfast.values.identity import AgentId

CONTRACT = "long_term"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN, BEN = AgentId("helper", "ann"), AgentId("helper", "ben")


async def _listed(store: FactStore, **options: Any) -> list[str]:
    return [memory.content for memory in await store.list(options.pop("agent", ANN), **options)]


async def _got(store: FactStore, id: str) -> Memory:
    memory = await store.get(ANN, id)
    assert memory is not None
    return memory


async def test_list_returns_memories_from_new_to_old(store: FactStore) -> None:
    for number in range(5):
        await store.save(ANN, f"fact {number}", topic="t", metadata={"n": number})
    await store.save(ANN, "elsewhere", namespace="n2")
    await store.save(BEN, "theirs")
    found = await store.list(ANN)
    assert [memory.content for memory in found] == [f"fact {4 - at}" for at in range(5)]
    assert [memory.metadata for memory in found] == [{"n": 4 - at} for at in range(5)]
    assert {(memory.score, memory.found_by) for memory in found} == {(1.0, ())}
    assert await _listed(store, namespace="n2") == ["elsewhere"]
    assert await _listed(store, limit=2) == ["fact 4", "fact 3"]
    assert await _listed(store, agent=AgentId("helper", "nobody")) == []


async def test_list_goes_on_after_the_id_of_the_last_memory_even_when_that_memory_is_gone(
    store: FactStore,
) -> None:
    ids = [await store.save(ANN, f"fact {number}") for number in range(7)]
    first = await store.list(ANN, limit=3)
    assert [memory.id for memory in first] == [*reversed(ids[4:])]
    await store.save(ANN, "newer than the page")
    await store.delete(ANN, first[-1].id)
    rest = await store.list(ANN, limit=100, after=first[-1].id)
    assert [memory.id for memory in rest] == [*reversed(ids[:4])]
    assert await store.list(ANN, after=ids[0]) == []


async def test_topic_and_min_confidence_narrow_a_list(store: FactStore) -> None:
    await store.save(ANN, "sure", topic="a", confidence=0.9)
    await store.save(ANN, "unsure", topic="a", confidence=0.1)
    await store.save(ANN, "other", topic="b", confidence=0.9)
    assert await _listed(store, topic="a") == ["unsure", "sure"]
    assert await _listed(store, min_confidence=0.5) == ["other", "sure"]
    assert await _listed(store, topic="a", min_confidence=0.5) == ["sure"]
    assert await _listed(store, topic="a", limit=1) == ["unsure"]
    with pytest.raises(InvalidInputError) as refused:
        await store.list(ANN, min_confidence=2)
    assert refused.value.field == "min_confidence"


async def test_list_leaves_out_superseded_memories_unless_it_is_asked_for_them(
    harness: Harness, store: FactStore
) -> None:
    old = await store.save(ANN, "old")
    await store.save(ANN, "between", ttl_seconds=60)
    new = await store.save(ANN, "new", supersedes=old)
    assert await _listed(store) == ["new", "between"]
    found = await store.list(ANN, superseded=True)
    assert [(one.content, one.superseded_by) for one in found] == [
        ("new", None),
        ("between", None),
        ("old", new),
    ]
    await harness.elapse(60)
    assert await _listed(store, superseded=True) == ["new", "old"]
    no_flag: Any = 1
    with pytest.raises(InvalidInputError) as refused:
        await store.list(ANN, superseded=no_flag)
    assert refused.value.field == "superseded"


async def test_a_list_limit_of_zero_is_an_empty_result(store: FactStore) -> None:
    await store.save(ANN, "a fact")
    assert await store.list(ANN, limit=0) == []
    assert await store.namespaces(ANN, limit=0) == []


async def test_a_list_limit_below_zero_is_refused(store: FactStore) -> None:
    for call in (store.list(ANN, limit=-1), store.namespaces(ANN, limit=-1)):
        with pytest.raises(InvalidInputError) as refused:
            await call
        assert refused.value.field == "limit"


async def test_an_update_supersedes_a_memory_and_keeps_what_it_does_not_change(
    harness: Harness,
) -> None:
    graph = harness.store("graph")
    await graph.add_entities([Entity("Person", {}, "ravi"), Entity("Person", {}, "mia")])
    store = harness.store(CONTRACT, graph=graph, mode="text")
    kept: dict[str, Any] = {"metadata": {"n": [1]}, "topic": "home", "confidence": 0.5}
    old = await store.save(ANN, "Ravi lives in Pune", source="s1", entities=["ravi"], **kept)
    new = await store.update(ANN, old, "Ravi lives in Goa")
    memory, before = await _got(store, new), await _got(store, old)
    assert (memory.content, memory.superseded_by) == ("Ravi lives in Goa", None)
    assert (memory.metadata, memory.topic, memory.confidence) == tuple(kept.values())
    assert (memory.source, memory.entities) == ("s1", ("ravi",))
    assert (before.content, before.superseded_by) == ("Ravi lives in Pune", new)
    assert [one.id for one in await store.search(ANN, "where does Ravi live")] == [new]
    assert await store.search(ANN, "Pune") == []
    last = await store.update(
        ANN, new, "Mia", metadata={}, topic="", confidence=1, source="", entities=["mia"]
    )
    changed = await _got(store, last)
    assert (changed.metadata, changed.topic, changed.confidence) == ({}, "", 1.0)
    assert (changed.source, changed.entities) == ("", ("mia",))
    by_graph = harness.store(CONTRACT, graph=graph, mode="graph")
    assert [one.id for one in await by_graph.search(ANN, "mia")] == [last]
    assert await by_graph.search(ANN, "ravi") == []
    assert (await _got(store, await store.update(ANN, last, "x", entities=[]))).entities == ()


async def test_an_update_keeps_the_subject(store: FactStore) -> None:
    first = await store.save(ANN, "ravi likes tea", subject="ravi", topic="drinks")
    second = await store.update(ANN, first, "ravi likes coffee", source="s1")
    third = await store.update(ANN, second, "ravi likes water", topic="more drinks")
    listed = {one.id: one for one in await store.list(ANN, superseded=True)}
    assert {one: listed[one].subject for one in listed} == dict.fromkeys(
        (first, second, third), "ravi"
    )
    newest = listed[third]
    assert (newest.content, newest.topic, newest.source) == (
        "ravi likes water",
        "more drinks",
        "s1",
    )
    assert [one.id for one in await store.list(ANN, topic="drinks", superseded=True)] == [
        second,
        first,
    ]


async def test_an_updated_memory_expires_when_the_old_one_would_have_unless_ttl_seconds_is_given(
    harness: Harness, store: FactStore
) -> None:
    short = await store.save(ANN, "short", ttl_seconds=100)
    renewed = await store.save(ANN, "renewed", ttl_seconds=100)
    forever = await store.save(ANN, "forever")
    await harness.elapse(60)
    kept = await store.update(ANN, short, "short, changed")
    assert (await _got(store, kept)).expires_at == (await _got(store, short)).expires_at
    longer = await _got(store, await store.update(ANN, renewed, "renewed, changed", ttl_seconds=90))
    assert longer.expires_at is not None
    assert longer.created_at is not None
    assert (longer.expires_at - longer.created_at).total_seconds() == 90
    assert (await _got(store, await store.update(ANN, forever, "always"))).expires_at is None
    await harness.elapse(40)
    assert await _listed(store) == ["always", "renewed, changed"]
    assert await store.search(ANN, "short") == []
    await harness.elapse(50)
    assert await _listed(store) == ["always"]


async def test_updating_an_unknown_memory_is_refused_and_nothing_is_written(
    store: FactStore,
) -> None:
    elsewhere = await store.save(ANN, "elsewhere", namespace="other")
    theirs = await store.save(BEN, "theirs")
    for unknown in ("nobody", elsewhere, theirs):
        with pytest.raises(NotFoundError) as refused:
            await store.update(ANN, unknown, "a fact", idempotency_key="k1")
        assert (refused.value.kind, refused.value.key) == ("memory", unknown)
    assert await store.list(ANN) == []
    assert await store.namespaces(ANN) == ["other"]
    assert await _listed(store, agent=BEN) == ["theirs"]


async def test_updating_a_superseded_memory_is_a_conflict_and_nothing_is_written(
    store: FactStore,
) -> None:
    old = await store.save(ANN, "old")
    new = await store.update(ANN, old, "new")
    with pytest.raises(ConflictError, match=new) as refused:
        await store.update(ANN, old, "newer")
    assert refused.value.key == old
    assert await _listed(store) == ["new"]


async def test_of_concurrent_updates_of_the_same_memory_one_wins(harness: Harness) -> None:
    graph = harness.store("graph")
    await graph.add_entities([Entity("Person", {}, "ravi")])
    store = harness.store(CONTRACT, graph=graph)
    old = await store.save(ANN, "old")
    outcomes = await asyncio.gather(
        *(store.update(ANN, old, f"new {at}", entities=["ravi"]) for at in range(10)),
        return_exceptions=True,
    )
    [winner] = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 9
    assert (await _got(store, old)).superseded_by == winner
    assert len(await store.list(ANN)) == 1


async def test_an_update_with_the_same_idempotency_key_and_changes_gives_the_same_id(
    store: FactStore,
) -> None:
    old = await store.save(ANN, "old", topic="t")
    new = await store.update(ANN, old, "new", idempotency_key="k1")
    assert await store.update(ANN, old, "new", idempotency_key="k1") == new
    await store.delete(ANN, old)
    assert await store.update(ANN, old, "new", idempotency_key="k1") == new
    assert await _listed(store, superseded=True) == ["new"]
    ids = await asyncio.gather(
        *(store.update(ANN, new, "newer", idempotency_key="k2") for _ in range(10))
    )
    assert len(set(ids)) == 1
    assert await _listed(store) == ["newer"]


async def test_an_update_with_the_same_idempotency_key_and_other_changes_is_a_conflict(
    store: FactStore,
) -> None:
    old = await store.save(ANN, "old", idempotency_key="k0")
    new = await store.update(ANN, old, "new", idempotency_key="k1")
    others: list[dict[str, Any]] = [{"topic": ""}, {"metadata": {}}, {"ttl_seconds": 60}]
    for other in others:
        with pytest.raises(ConflictError):
            await store.update(ANN, old, "new", idempotency_key="k1", **other)
    for conflicting in (
        store.update(ANN, old, "other", idempotency_key="k1"),
        store.update(ANN, new, "new", idempotency_key="k1"),
        store.save(ANN, "new", supersedes=old, idempotency_key="k1"),
        store.update(ANN, new, "old", idempotency_key="k0"),
    ):
        with pytest.raises(ConflictError):
            await conflicting
    assert await _listed(store, superseded=True) == ["new", "old"]


async def test_namespaces_are_those_where_the_agent_has_memories_by_code_points(
    harness: Harness, store: FactStore
) -> None:
    for name in ("b", "B", "ä", "a/1", "z"):
        await store.save(ANN, "a fact", namespace=name)
    await store.save(BEN, "a fact", namespace="theirs")
    await store.save(ANN, "a fact", namespace="short", ttl_seconds=60)
    assert await store.namespaces(ANN) == ["B", "a/1", "b", "short", "z", "ä"]
    await harness.elapse(60)
    await store.clear(ANN, namespace="z")
    [only] = await store.list(ANN, namespace="b")
    await store.update(ANN, only.id, "changed", namespace="b")
    assert await store.namespaces(ANN) == ["B", "a/1", "b", "ä"]
    assert await store.namespaces(BEN) == ["theirs"]
    assert await harness.store(CONTRACT, tenant="other").namespaces(ANN) == []


async def test_a_limit_and_after_select_a_page_of_the_namespaces(store: FactStore) -> None:
    names = [f"n{at}" for at in range(5)]
    for name in names:
        await store.save(ANN, "a fact", namespace=name)
    assert await store.namespaces(ANN, limit=2) == names[:2]
    assert await store.namespaces(ANN, limit=2, after="n1") == names[2:4]
    assert await store.namespaces(ANN, after="n10") == names[2:]
    assert await store.namespaces(ANN, after="n4") == []
