"""What every ``LongTermMemory`` promises about its memories."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, timedelta
from typing import Any

import pytest

from holdfast.contracts.long_term_memory import LongTermMemory
from holdfast.testing.harness import Harness
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.facts import Memory
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


async def test_a_memory_comes_back_as_it_was_saved(store: LongTermMemory) -> None:
    saved = await store.save(ANN, "Ravi prefers Python", metadata={"tags": ["a", "b"]})
    got = await _got(store, saved)
    assert (got.content, got.metadata, got.id) == (
        "Ravi prefers Python",
        {"tags": ["a", "b"]},
        saved,
    )
    [found] = await store.search(ANN, "python")
    assert (found.content, found.metadata, found.id) == (got.content, got.metadata, saved)


async def test_each_save_is_a_memory_of_its_own(store: LongTermMemory) -> None:
    ids = [await store.save(ANN, "an equal fact") for _ in range(3)]
    assert len(set(ids)) == 3
    assert await _contents(store, "equal") == ["an equal fact"] * 3


async def test_a_memory_says_when_it_was_saved_and_when_it_expires(
    harness: Harness, store: LongTermMemory
) -> None:
    first = await _got(store, await store.save(ANN, "first"))
    await harness.elapse(90)
    second = await _got(store, await store.save(ANN, "second", ttl_seconds=60))
    assert first.created_at is not None
    assert second.created_at is not None
    assert first.created_at.tzinfo is UTC
    assert second.created_at - first.created_at >= timedelta(seconds=90)
    assert first.expires_at is None
    assert second.expires_at == second.created_at + timedelta(seconds=60)


async def test_get_of_an_unknown_memory_is_none(store: LongTermMemory) -> None:
    assert await store.get(ANN, "nobody") is None
    await store.save(ANN, "a fact")
    assert await store.get(ANN, "nobody") is None


async def test_metadata_comes_back_exactly_as_it_went_in(store: LongTermMemory) -> None:
    exact = {"z": 1, "a": [1e16, -0.0, 1, 1.0, True, None, "a\x00b"], "": {"y": {}, "b": []}}
    got = await _got(store, await store.save(ANN, "a fact", metadata=exact))
    [found] = await store.search(ANN, "fact")
    assert repr(got.metadata) == repr(found.metadata) == repr(exact)
    assert (await _got(store, await store.save(ANN, "bare"))).metadata == {}


async def test_content_is_any_text_the_empty_one_included(store: LongTermMemory) -> None:
    texts = [
        "",
        " ",
        "a\x00b",
        "黒猫が好き",
        "\U0001f980",
        "'; DROP TABLE x; --",
        "e\u0301",
        "y" * 10_000,
    ]
    for text in texts:
        assert (await _got(store, await store.save(ANN, text))).content == text
    assert await _contents(store) == texts[::-1]
    assert await _contents(store, "黒猫") == ["黒猫が好き"]
    assert await _contents(store, "\U0001f980") == ["\U0001f980"]


async def test_topic_confidence_and_source_are_kept(store: LongTermMemory) -> None:
    saved = await store.save(ANN, "a fact", topic="tools", confidence=0.25, source="s1")
    got = await _got(store, saved)
    assert (got.topic, got.confidence, got.source) == ("tools", 0.25, "s1")
    [found] = await store.search(ANN, "fact")
    assert (found.topic, found.confidence, found.source) == ("tools", 0.25, "s1")
    bare = await _got(store, await store.save(ANN, "bare"))
    assert (bare.topic, bare.confidence, bare.source) == ("", 1.0, "")


async def test_a_memory_has_the_subject_that_it_was_saved_with(
    harness: Harness, store: LongTermMemory
) -> None:
    about = await store.save(ANN, "ravi likes tea", subject="bjørn/2", topic="drinks")
    plain = await store.save(ANN, "nobody likes tea")
    await harness.reopen()
    store = harness.store("long_term")
    for query in ("likes", ""):
        found = {one.id: one.subject for one in await store.search(ANN, query)}
        assert found == {about: "bjørn/2", plain: ""}
    [narrowed] = await store.search(ANN, "", topic="drinks")
    assert (narrowed.content, narrowed.subject) == ("ravi likes tea", "bjørn/2")
    # A retry must repeat it.
    kept = await store.save(ANN, "tea", subject="ravi", idempotency_key="k")
    assert await store.save(ANN, "tea", subject="ravi", idempotency_key="k") == kept
    for other in (None, "ben"):
        with pytest.raises(ConflictError):
            await store.save(ANN, "tea", subject=other, idempotency_key="k")


async def test_a_subject_that_is_not_an_id_is_refused_and_nothing_is_saved(
    harness: Harness, store: LongTermMemory
) -> None:
    before = await harness.raw("long_term")
    wrong: Any
    for wrong in ("", 7, "a\0b", "x" * 10_000, "holdfast.index"):
        with pytest.raises(InvalidInputError) as raised:
            await store.save(ANN, "a fact", subject=wrong)
        assert raised.value.field == "subject"
    assert await harness.raw("long_term") == before


async def test_a_confidence_outside_of_0_to_1_is_refused(store: LongTermMemory) -> None:
    bad: Any
    for bad in (-0.1, 1.1, math.nan, math.inf, True, "1", None):
        with pytest.raises(InvalidInputError) as refused:
            await store.save(ANN, "a fact", confidence=bad)
        assert refused.value.field == "confidence"
        if bad is not None:
            with pytest.raises(InvalidInputError) as refused:
                await store.search(ANN, "fact", min_confidence=bad)
            assert refused.value.field == "min_confidence"
    assert await _contents(store) == []


async def test_a_memory_without_ttl_seconds_never_expires(
    harness: Harness, store: LongTermMemory
) -> None:
    saved = await store.save(ANN, "a fact")
    await harness.elapse(10 * 365 * 24 * 3600)
    assert (await _got(store, saved)).content == "a fact"
    assert await _contents(store, "fact") == ["a fact"]


async def test_a_memory_expires_when_its_ttl_seconds_have_passed(
    harness: Harness, store: LongTermMemory
) -> None:
    short = await store.save(ANN, "a short fact", ttl_seconds=60)
    long = await store.save(ANN, "a long fact", ttl_seconds=600)
    await harness.elapse(59)
    assert await _contents(store, "fact") == ["a long fact", "a short fact"]
    await harness.elapse(1)
    assert await _contents(store, "fact") == ["a long fact"]
    assert await _contents(store) == ["a long fact"]
    assert await store.get(ANN, short) is None
    assert await store.delete(ANN, short) is False
    with pytest.raises(NotFoundError):
        await store.save(ANN, "a new fact", supersedes=short)
    assert await store.delete(ANN, long) is True


async def test_a_ttl_seconds_of_zero_or_less_is_refused(store: LongTermMemory) -> None:
    bad: Any
    for bad in (0, -1, math.nan, math.inf, True, "60"):
        with pytest.raises(InvalidInputError) as refused:
            await store.save(ANN, "a fact", ttl_seconds=bad)
        assert refused.value.field == "ttl_seconds"
    assert await _contents(store) == []


async def test_delete_removes_a_memory_and_says_whether_it_was_there(
    store: LongTermMemory,
) -> None:
    first, second = await store.save(ANN, "first fact"), await store.save(ANN, "second fact")
    assert await _contents(store, "fact") == ["second fact", "first fact"]
    assert await store.delete(ANN, first) is True
    assert await store.delete(ANN, first) is False
    assert await store.delete(ANN, "nobody") is False
    assert await store.get(ANN, first) is None
    assert await _contents(store, "fact") == ["second fact"]
    assert (await _got(store, second)).content == "second fact"


async def test_clear_removes_the_memories_of_one_scope(store: LongTermMemory) -> None:
    old = await store.save(ANN, "old")
    gone = await store.save(ANN, "gone", supersedes=old)
    await store.save(ANN, "kept by namespace", namespace="other")
    await store.save(BEN, "kept by agent")
    await store.clear(ANN)
    assert await _contents(store) == await _contents(store, "gone") == []
    assert [await store.get(ANN, one) for one in (old, gone)] == [None, None]
    assert await _contents(store, namespace="other") == ["kept by namespace"]
    assert await _contents(store, agent=BEN) == ["kept by agent"]


async def test_clear_is_idempotent(store: LongTermMemory) -> None:
    await store.clear(ANN)
    await store.save(ANN, "a fact")
    await store.clear(ANN)
    await store.clear(ANN)
    assert await _contents(store) == []


async def test_one_namespace_never_sees_anothers_memories(store: LongTermMemory) -> None:
    ours = await store.save(ANN, "our fact", namespace="ours")
    await store.save(ANN, "their fact", namespace="theirs")
    assert await _contents(store, "fact", namespace="ours") == ["our fact"]
    assert await _contents(store, namespace="theirs") == ["their fact"]
    assert await _contents(store, "fact") == []
    assert await store.get(ANN, ours, namespace="theirs") is None
    assert await store.delete(ANN, ours, namespace="theirs") is False
    assert await _contents(store, namespace="ours") == ["our fact"]


async def test_one_agent_never_sees_anothers_memories(store: LongTermMemory) -> None:
    ours = await store.save(ANN, "our fact")
    await store.save(BEN, "their fact")
    await store.save(AgentId("other", "ann"), "a namesake's fact")
    assert await _contents(store, "fact") == await _contents(store) == ["our fact"]
    assert await _contents(store, "fact", agent=BEN) == ["their fact"]
    assert await store.get(BEN, ours) is None
    assert await store.delete(BEN, ours) is False
    assert (await _got(store, ours)).content == "our fact"


async def test_one_tenant_never_sees_anothers_memories(harness: Harness) -> None:
    ours, theirs = harness.store(CONTRACT), harness.store(CONTRACT, tenant="other")
    saved = await ours.save(ANN, "our fact", idempotency_key="k1")
    assert await _contents(theirs, "fact") == await _contents(theirs) == []
    assert await theirs.get(ANN, saved) is None
    assert await theirs.delete(ANN, saved) is False
    with pytest.raises(NotFoundError):
        await theirs.save(ANN, "their fact", supersedes=saved)
    await theirs.save(ANN, "their fact", idempotency_key="k1")
    await theirs.clear(ANN)
    assert await _contents(ours, "fact") == ["our fact"]


async def test_an_agent_is_the_same_by_its_id_and_by_its_text(store: LongTermMemory) -> None:
    by_text: Any = "helper/ann"
    saved = await store.save(by_text, "a fact")
    assert (await _got(store, saved)).content == "a fact"
    await store.save(ANN, "another fact")
    assert await _contents(store, agent=by_text) == ["another fact", "a fact"]


async def test_concurrent_saves_are_all_kept(store: LongTermMemory) -> None:
    ids = await asyncio.gather(*(store.save(ANN, f"fact {at}") for at in range(50)))
    assert len(set(ids)) == 50
    assert sorted(await _contents(store, "fact")) == sorted(f"fact {at}" for at in range(50))


async def test_an_agent_a_namespace_or_an_id_that_is_not_an_id_is_refused(
    store: LongTermMemory,
) -> None:
    bad: Any
    for bad in ("", "a\nb", "x" * 513, "\ud800", 7):
        calls = (
            store.save(bad, "a fact"),
            store.save(ANN, "a fact", namespace=bad),
            store.save(ANN, "a fact", supersedes=bad),
            store.save(ANN, "a fact", idempotency_key=bad),
            store.save(ANN, "a fact", entities=[bad]),
            store.search(bad, "fact"),
            store.search(ANN, "fact", namespace=bad),
            store.get(bad, "m"),
            store.get(ANN, bad),
            store.get(ANN, "m", namespace=bad),
            store.delete(bad, "m"),
            store.delete(ANN, bad),
            store.delete(ANN, "m", namespace=bad),
            store.clear(bad),
            store.clear(ANN, namespace=bad),
        )
        for call in calls:
            with pytest.raises(InvalidInputError):
                await call
    assert await _contents(store) == []


async def test_a_save_that_is_refused_writes_nothing(store: LongTermMemory) -> None:
    old = await store.save(ANN, "old")
    bad: list[dict[str, Any]] = [
        {"content": "\ud800"},
        {"content": 7},
        {"metadata": {"n": math.nan}},
        {"metadata": [1]},
        {"topic": "\ud800"},
        {"topic": None},
        {"source": None},
        {"entities": "ravi"},
    ]
    for wrong in bad:
        options = {"content": "a fact", "supersedes": old, "idempotency_key": "k1"} | wrong
        with pytest.raises(InvalidInputError) as refused:
            await store.save(ANN, **options)
        assert refused.value.field.startswith(next(iter(wrong)))
    assert await _contents(store) == ["old"]
    assert (await _got(store, old)).superseded_by is None


async def test_what_a_store_returns_is_the_callers_to_mutate(store: LongTermMemory) -> None:
    saved = await store.save(ANN, "a fact", metadata={"tags": ["x"]})
    [found], [recent] = await store.search(ANN, "fact"), await store.search(ANN, "")
    for memory in (await _got(store, saved), found, recent):
        memory.metadata["tags"].append("y")
    assert (await _got(store, saved)).metadata == {"tags": ["x"]}
    [again] = await store.search(ANN, "fact")
    assert again.metadata == {"tags": ["x"]}


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: LongTermMemory) -> None:
    metadata = {"tags": ["x"]}
    saved = await store.save(ANN, "a fact", metadata=metadata)
    metadata["tags"].append("y")
    assert (await _got(store, saved)).metadata == {"tags": ["x"]}


async def test_memories_are_still_there_after_a_reopen(harness: Harness) -> None:
    store = harness.store(CONTRACT)
    old = await store.save(ANN, "old fact")
    saved = await store.save(ANN, "a fact", supersedes=old, idempotency_key="k1", topic="t")
    before = await store.get(ANN, saved)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.get(ANN, saved) == before
    assert (await _got(again, old)).superseded_by == saved
    assert await _contents(again, "fact") == ["a fact"]
    with pytest.raises(ConflictError):
        await again.save(ANN, "another fact", idempotency_key="k1")
