"""What every ``LongTermMemory`` promises about recall by meaning and by the graph."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import pytest_asyncio

from holdfast.contracts.graph import Graph
from holdfast.contracts.long_term_memory import LongTermMemory
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.testing.embedders import FlakyEmbedder
from holdfast.testing.harness import Harness
from holdfast.values.errors import (
    EngineError,
    InvalidInputError,
    NotFoundError,
    NotSupportedError,
)
from holdfast.values.facts import RecallMode
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId

CONTRACT = "long_term"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = AgentId("helper", "ann")


@pytest_asyncio.fixture(loop_scope="session")
async def graph(harness: Harness) -> Graph:
    """Ravi works on Project X, which is part of Orion; nobody knows Zoe."""
    store: Graph = harness.store("graph")
    await store.add_entities(
        [
            Entity("Person", {"name": "Ravi Kumar"}, "ravi"),
            Entity("Project", {"name": "Project-X"}, "p1"),
            Entity("Programme", {"name": "Orion"}, "orion"),
            Entity("Person", {"name": "Zoe"}, "zoe"),
        ]
    )
    await store.add_relationships(
        [Relationship("ravi", "p1", "works_on"), Relationship("p1", "orion", "part_of")]
    )
    return store


async def _contents(store: LongTermMemory, query: str, **options: Any) -> list[str]:
    return [memory.content for memory in await store.search(ANN, query, **options)]


async def test_a_store_recalls_by_text_unless_it_has_an_embedder_or_a_graph_and_then_hybrid(
    harness: Harness, graph: Graph
) -> None:
    plain = harness.store(CONTRACT)
    await plain.save(ANN, "low tide")
    assert await _contents(plain, "moon") == []
    embedding = harness.store(CONTRACT, embedder=HashEmbedder())
    assert await _contents(embedding, "moon") == ["low tide"]
    assert (await embedding.search(ANN, "tide"))[0].found_by == ("text", "vector")
    linking = harness.store(CONTRACT, graph=graph)
    await linking.save(ANN, "likes tea", entities=["zoe"])
    assert await _contents(linking, "tide zoe") == ["low tide", "likes tea"]
    text = harness.store(CONTRACT, embedder=HashEmbedder(), graph=graph, mode="text")
    assert await _contents(text, "moon zoe") == []


async def test_an_unknown_mode_is_refused_with_the_known_ones(harness: Harness) -> None:
    with pytest.raises(InvalidInputError, match="text, vector, graph, hybrid") as refused:
        await harness.store(CONTRACT, mode="magic").search(ANN, "tide")
    assert refused.value.field == "mode"


async def test_a_result_says_which_arms_found_it(harness: Harness, graph: Graph) -> None:
    options: dict[str, Any] = {"embedder": HashEmbedder(), "graph": graph}
    store = harness.store(CONTRACT, **options)
    saved = await store.save(ANN, "Zoe likes tides", entities=["zoe"])
    for mode, arms in {
        "text": ("text",),
        "vector": ("vector",),
        "graph": ("graph",),
        "hybrid": ("text", "vector", "graph"),
    }.items():
        [found] = await harness.store(CONTRACT, mode=mode, **options).search(ANN, "Zoe tide")
        assert (found.found_by, found.degraded) == (arms, "")
        [recent] = await harness.store(CONTRACT, mode=mode, **options).search(ANN, "")
        assert recent.found_by == ("recent",)
    got = await store.get(ANN, saved)
    assert got is not None
    assert got.found_by == ()


async def test_a_vector_search_returns_the_nearest_by_meaning_first(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=HashEmbedder(), mode="vector")
    for content in ("a green cheese moon", "low tide at dawn", "low tide at noon"):
        await store.save(ANN, content)
    assert await _contents(store, "low tide, noon") == [
        "low tide at noon",
        "low tide at dawn",
        "a green cheese moon",
    ]
    assert await _contents(store, "low tide, noon", limit=1) == ["low tide at noon"]


async def test_a_vector_search_without_an_embedder_is_not_supported_and_the_error_says_how_to_configure_one(  # noqa: E501 - the promise
    harness: Harness,
) -> None:
    store = harness.store(CONTRACT, mode="vector")
    saved = await store.save(ANN, "low tide")
    with pytest.raises(NotSupportedError, match="configure an embedder"):
        await store.search(ANN, "tide")
    assert await store.get(ANN, saved) is not None


async def test_a_vector_search_with_the_embedder_down_is_an_engine_error(
    harness: Harness,
) -> None:
    embedder = FlakyEmbedder(down=True)
    store = harness.store(CONTRACT, embedder=embedder, mode="vector")
    await store.save(ANN, "low tide")
    with pytest.raises(EngineError):
        await store.search(ANN, "tide")
    embedder.down = False
    assert await _contents(store, "tide") == ["low tide"]


async def test_a_hybrid_search_fuses_words_and_meaning(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=HashEmbedder())
    for content in ("moon moon moon", "the moon over the sea at night in june", "a tea"):
        await store.save(ANN, content)
    found = await store.search(ANN, "moon")
    assert (found[0].content, found[0].score) == ("moon moon moon", pytest.approx(1))
    assert [memory.found_by for memory in found] == [("text", "vector")] * 2 + [("vector",)]


async def test_a_hybrid_search_with_the_embedder_down_answers_from_full_text_and_says_so(
    harness: Harness,
) -> None:
    embedder = FlakyEmbedder(down=True)
    store = harness.store(CONTRACT, embedder=embedder, mode="hybrid")
    await store.save(ANN, "low tide")
    await store.save(ANN, "a green moon")
    [found] = await store.search(ANN, "tide")
    assert (found.content, found.found_by) == ("low tide", ("text",))
    assert embedder.name in found.degraded
    embedder.down = False
    found, _ = await store.search(ANN, "tide")
    assert (found.content, found.degraded) == ("low tide", "")


async def test_a_save_is_durable_before_it_is_embedded(harness: Harness) -> None:
    for mode in get_args(RecallMode):
        options = {"embedder": FlakyEmbedder(down=True), "mode": mode}
        saved = await harness.store(CONTRACT, **options).save(ANN, f"low tide, {mode}")
        await harness.reopen()
        assert await harness.store(CONTRACT, **options).get(ANN, saved) is not None
    assert len(await _contents(harness.store(CONTRACT), "tide")) == 4


async def test_what_the_embedder_missed_is_embedded_by_a_later_search(harness: Harness) -> None:
    embedder = FlakyEmbedder(down=True)
    store = harness.store(CONTRACT, embedder=embedder)
    await store.save(ANN, "low tide")
    await store.search(ANN, "tide")
    embedder.down = False
    await store.save(ANN, "a green moon")
    found = await store.search(ANN, "unheard of")
    assert sorted(memory.content for memory in found) == ["a green moon", "low tide"]
    assert {memory.found_by for memory in found} == {("vector",)}


async def test_a_memory_is_embedded_once(harness: Harness) -> None:
    embedder = FlakyEmbedder()
    store = harness.store(CONTRACT, embedder=embedder)
    for content in ("low tide", "a green moon"):
        await store.save(ANN, content)
        await store.search(ANN, "tide")
        await store.search(ANN, "moon")
    assert sorted(embedder.embedded) == ["a green moon", "low tide"]


async def test_a_change_of_embedder_embeds_again(harness: Harness) -> None:
    old, new = FlakyEmbedder(64), FlakyEmbedder(32)
    for embedder in (old, new):
        store = harness.store(CONTRACT, embedder=embedder, mode="vector")
        await store.save(ANN, f"low tide by {embedder.name}")
        found = await _contents(store, f"low tide by {embedder.name}")
        assert found[0] == f"low tide by {embedder.name}"
    assert sorted(new.embedded) == ["low tide by hash-32", "low tide by hash-64"]


async def test_a_text_that_the_embedder_cannot_take_never_blocks_its_neighbours(
    harness: Harness,
) -> None:
    store = harness.store(CONTRACT, embedder=FlakyEmbedder(poison="acid"))
    contents = ["low tide", "high tide", "acid rain", "a green moon", "salt"]
    for content in contents:
        await store.save(ANN, content)
    found = await store.search(ANN, "unheard of")
    assert {memory.content for memory in found} == set(contents) - {"acid rain"}
    assert all(memory.degraded for memory in found)
    assert (await _contents(store, "rain"))[0] == "acid rain"


async def test_a_query_that_names_an_entity_recalls_its_memories(
    harness: Harness, graph: Graph
) -> None:
    store = harness.store(CONTRACT, graph=graph, mode="graph")
    saved = await store.save(ANN, "likes tea", entities=["zoe"])
    await store.save(ANN, "likes coffee")
    assert await _contents(store, "what does Zoe drink?") == ["likes tea"]
    got = await store.get(ANN, saved)
    assert got is not None
    assert got.entities == ("zoe",)


async def test_an_entity_is_recognised_by_its_name_whatever_the_case(
    harness: Harness, graph: Graph
) -> None:
    store = harness.store(CONTRACT, graph=graph, mode="graph")
    await store.save(ANN, "is late", entities=["p1"])
    for query in ("Project-X", "is PROJECT X late?", "project x's budget", "about p1"):
        assert await _contents(store, query) == ["is late"]
    for query in ("project", "x", "projectx", "p12"):
        assert await _contents(store, query) == []


async def test_the_memories_of_neighbours_come_after_those_of_the_entity(
    harness: Harness, graph: Graph
) -> None:
    store = harness.store(CONTRACT, graph=graph, mode="graph")
    await store.save(ANN, "plays chess", entities=["ravi"])
    await store.save(ANN, "is late", entities=["p1"])
    await store.save(ANN, "is secret", entities=["orion"])
    await store.save(ANN, "likes tea", entities=["zoe"])
    assert await _contents(store, "who is Ravi Kumar") == ["plays chess", "is late"]
    assert await _contents(store, "orion") == ["is secret", "is late"]
    assert await _contents(store, "project x") == ["is late", "is secret", "plays chess"]


async def test_a_query_that_names_no_entity_recalls_nothing_from_the_graph(
    harness: Harness, graph: Graph
) -> None:
    store = harness.store(CONTRACT, graph=graph, mode="graph")
    await store.save(ANN, "low tide", entities=["zoe"])
    assert await _contents(store, "low tide") == []
    assert await _contents(store, "person") == []


async def test_a_hybrid_search_adds_what_the_graph_knows(harness: Harness, graph: Graph) -> None:
    store = harness.store(CONTRACT, graph=graph)
    await store.save(ANN, "budget is small", entities=["zoe"])
    await store.save(ANN, "budget is large", entities=["p1"])
    await store.save(ANN, "will move soon", entities=["ravi"])
    found = await store.search(ANN, "budget of Project-X")
    assert [memory.content for memory in found] == [
        "budget is large",
        "budget is small",
        "will move soon",
    ]
    assert [memory.found_by for memory in found] == [("text", "graph"), ("text",), ("graph",)]


async def test_entities_that_are_not_in_the_graph_are_refused_and_nothing_is_written(
    harness: Harness, graph: Graph
) -> None:
    store = harness.store(CONTRACT, graph=graph)
    with pytest.raises(NotFoundError) as refused:
        await store.save(ANN, "likes tea", entities=["zoe", "nobody"])
    assert (refused.value.kind, refused.value.key) == ("entity", "nobody")
    assert await _contents(store, "") == []


async def test_entities_without_a_graph_are_not_supported_and_the_error_says_how_to_configure_one(
    store: LongTermMemory,
) -> None:
    with pytest.raises(NotSupportedError, match="configure a graph"):
        await store.save(ANN, "likes tea", entities=["zoe"])
    assert await _contents(store, "") == []
    await store.save(ANN, "likes tea", entities=[])


async def test_a_graph_search_without_a_graph_is_not_supported_and_the_error_says_how_to_configure_one(  # noqa: E501 - the promise
    harness: Harness,
) -> None:
    with pytest.raises(NotSupportedError, match="configure a graph"):
        await harness.store(CONTRACT, mode="graph").search(ANN, "zoe")


async def test_every_mode_leaves_out_the_superseded_the_expired_and_the_deleted(
    harness: Harness, graph: Graph
) -> None:
    options: dict[str, Any] = {"embedder": HashEmbedder(), "graph": graph}
    store = harness.store(CONTRACT, **options)
    facts = [f"Zoe fact {at}" for at in range(4)]
    ids = [
        await store.save(ANN, fact, entities=["zoe"], ttl_seconds=60 if fact == facts[2] else None)
        for fact in facts
    ]
    modes = [harness.store(CONTRACT, mode=mode, **options) for mode in get_args(RecallMode)]
    for mode in modes:
        assert sorted(await _contents(mode, "zoe fact")) == facts
    await store.save(ANN, "nothing", supersedes=ids[0], topic="other")
    await store.delete(ANN, ids[1])
    await harness.elapse(60)
    for mode in modes:
        assert await _contents(mode, "zoe fact", topic="") == facts[3:]


async def test_every_mode_scores_between_0_and_1(harness: Harness, graph: Graph) -> None:
    options: dict[str, Any] = {"embedder": HashEmbedder(2), "graph": graph}
    store = harness.store(CONTRACT, **options)
    for content in ("Zoe", "low tide", "a green moon", "Zoe and the low tide", "\U0001f980"):
        await store.save(ANN, content, entities=["zoe"] if "Zoe" in content else None)
    for mode in get_args(RecallMode):
        for query in ("zoe", "Zoe saw a low tide", "ravi moon"):
            found = await harness.store(CONTRACT, mode=mode, **options).search(ANN, query)
            scores = [memory.score for memory in found]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
