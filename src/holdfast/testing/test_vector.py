"""What every ``VectorStore`` promises about its documents."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from holdfast.contracts.vectors import VectorStore
from holdfast.testing.embedders import WaitingEmbedder
from holdfast.testing.harness import Harness
from holdfast.values.content import (
    DataBlock,
    ErrorBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from holdfast.values.documents import Document
from holdfast.values.errors import AlreadyExistsError, InvalidInputError

CONTRACT = "vectors"
pytestmark = pytest.mark.asyncio(loop_scope="session")

EAST, NORTH, WEST = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]


def _document(id: str, embedding: list[float] | None = None, **metadata: Any) -> Document:
    return Document.from_text(f"text of {id}", id=id, embedding=embedding, metadata=metadata)


async def _ids(store: VectorStore, collection: str = "default") -> list[str]:
    return sorted(
        result.id for result in await store.search(EAST, collection=collection, limit=1000)
    )


async def test_a_document_comes_back_as_it_was_added(store: VectorStore) -> None:
    document = Document(
        [TextBlock("low tide"), ImageBlock(url="https://example.org/a.png")],
        "d1",
        [0.5, -0.25],
        {"kind": "note", "tags": ["a", "b"]},
    )
    await store.add([document])
    assert await store.get(["d1"]) == [document]


async def test_add_returns_the_ids_in_input_order(store: VectorStore) -> None:
    documents = [_document(name, EAST) for name in ("c", "a", "b")]
    assert await store.add(documents) == ["c", "a", "b"]
    assert await store.upsert([_document("z", EAST), *documents]) == ["z", "c", "a", "b"]


async def test_a_document_without_an_id_gets_one(store: VectorStore) -> None:
    first, second = (Document([TextBlock("x")], embedding=EAST) for _ in range(2))
    ids = await store.add([first, second])
    assert len(set(ids)) == 2
    assert [document.id for document in await store.get(ids)] == ids


async def test_add_of_an_existing_id_is_refused_and_nothing_is_written(store: VectorStore) -> None:
    await store.add([_document("a", EAST, version=1)])
    with pytest.raises(AlreadyExistsError) as refused:
        await store.add([_document("b", EAST), _document("a", NORTH, version=2)])
    assert refused.value.key == "a"
    assert await _ids(store) == ["a"]
    [kept] = await store.get(["a"])
    assert (kept.metadata, kept.embedding) == ({"version": 1}, EAST)


async def test_add_of_the_same_id_twice_in_a_batch_is_refused_and_nothing_is_written(
    store: VectorStore,
) -> None:
    with pytest.raises(AlreadyExistsError):
        await store.add([_document("a", EAST), _document("b", EAST), _document("a", EAST)])
    assert await store.list_collections() == []


async def test_upsert_overwrites_the_whole_document(store: VectorStore) -> None:
    await store.add([_document("a", EAST, old=1), _document("b", EAST)])
    replacement = Document.from_text("new", id="a", embedding=WEST, metadata={"new": 2})
    assert await store.upsert([replacement]) == ["a"]
    assert await store.get(["a"]) == [replacement]
    assert [result.id for result in await store.search(WEST)] == ["a", "b"]


async def test_upsert_adds_a_document_that_is_not_there(store: VectorStore) -> None:
    await store.upsert([_document("a", EAST)])
    assert await store.get(["a"]) == [_document("a", EAST)]


async def test_upsert_of_the_same_id_twice_in_a_batch_is_refused_and_nothing_is_written(
    store: VectorStore,
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await store.upsert([_document("a", EAST), _document("a", NORTH)])
    assert refused.value.field == "documents[1].id"
    assert await store.list_collections() == []


async def test_an_empty_batch_does_nothing(store: VectorStore) -> None:
    assert await store.add([]) == []
    assert await store.upsert([]) == []
    assert await store.get([]) == []
    assert await store.delete([]) == 0
    assert await store.list_collections() == []


async def test_a_batch_with_one_bad_document_writes_nothing(store: VectorStore) -> None:
    bad: list[Any] = [
        _document("", EAST),
        _document("x", EAST, value=math.nan),
        Document("text", "x", EAST),  # type: ignore[arg-type] # on purpose
        Document([TextBlock("\ud800")], "x", EAST),
        {"id": "x"},
    ]
    for document in bad:
        for write in (store.add, store.upsert):
            with pytest.raises(InvalidInputError) as refused:
                await write([_document("a", EAST), document])
            assert refused.value.field.startswith("documents[1]")
    assert await store.list_collections() == []


async def test_ids_are_per_collection(store: VectorStore) -> None:
    await store.add([_document("a", EAST, of="one")], collection="one")
    await store.add([_document("a", EAST, of="two")], collection="two")
    [found] = await store.get(["a"], collection="two")
    assert found.metadata == {"of": "two"}


async def test_get_returns_the_documents_in_the_order_asked_each_once_without_the_unknown(
    store: VectorStore,
) -> None:
    await store.add([_document(name, EAST) for name in ("a", "b", "c")])
    found = await store.get(["c", "nobody", "a", "c"])
    assert [document.id for document in found] == ["c", "a"]


async def test_an_unknown_collection_is_empty(store: VectorStore) -> None:
    assert await store.search(EAST, collection="nobody") == []
    assert await store.get(["a"], collection="nobody") == []
    assert await store.delete(["a"], collection="nobody") == 0
    assert await store.delete_collection("nobody") == 0
    assert await store.list_collections() == []


async def test_delete_returns_the_number_of_documents_deleted(store: VectorStore) -> None:
    await store.add([_document(name, EAST) for name in ("a", "b", "c")])
    assert await store.delete(["a", "nobody", "c", "a"]) == 2
    assert await store.delete(["a", "c"]) == 0


async def test_a_deleted_document_is_not_found_any_more(store: VectorStore) -> None:
    await store.add([_document("a", EAST), _document("b", EAST)])
    assert await _ids(store) == ["a", "b"]
    await store.delete(["a"])
    assert await _ids(store) == ["b"]
    assert await store.get(["a"]) == []
    assert await store.add([_document("a", EAST)]) == ["a"]


async def test_delete_collection_returns_the_number_of_documents(store: VectorStore) -> None:
    await store.add([_document("a", EAST), _document("b", EAST)], collection="one")
    await store.add([_document("a", EAST)], collection="two")
    assert await store.delete_collection("one") == 2
    assert await store.delete_collection("one") == 0
    assert await store.get(["a"], collection="one") == []
    assert await store.list_collections() == ["two"]


async def test_list_collections_names_the_collections_with_documents_by_code_points(
    store: VectorStore,
) -> None:
    for name in ("b", "é", "Z", "a"):
        await store.add([_document("d", EAST)], collection=name)
    assert await store.list_collections() == ["Z", "a", "b", "é"]
    await store.delete(["d"], collection="a")
    assert await store.list_collections() == ["Z", "b", "é"]


async def test_one_collection_never_sees_anothers_documents(store: VectorStore) -> None:
    await store.add([_document("a", EAST)], collection="one")
    await store.add([_document("b", EAST)], collection="two")
    assert await _ids(store, "one") == ["a"]
    assert await store.get(["b"], collection="one") == []
    assert await store.delete(["b"], collection="one") == 0
    assert await _ids(store, "two") == ["b"]


async def test_one_tenant_never_sees_anothers_documents(harness: Harness) -> None:
    ours, theirs = harness.store(CONTRACT), harness.store(CONTRACT, tenant="other")
    await ours.add([_document("a", EAST)])
    assert await theirs.search(EAST) == []
    assert await theirs.get(["a"]) == []
    assert await theirs.list_collections() == []
    assert await theirs.delete(["a"]) == 0
    assert await theirs.delete_collection("default") == 0
    await theirs.add([_document("a", [1.0, 0.0, 0.0])])
    assert await ours.get(["a"]) == [_document("a", EAST)]


async def test_concurrent_adds_of_different_documents_are_all_kept(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=WaitingEmbedder(2))
    names = [f"d{at:02}" for at in range(40)]
    await asyncio.gather(*(store.add([_document(name)]) for name in names))
    assert await _ids(store) == names


async def test_of_concurrent_adds_of_the_same_id_one_wins(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=WaitingEmbedder(2))
    outcomes = await asyncio.gather(
        *(store.add([_document("a", by=at)]) for at in range(20)), return_exceptions=True
    )
    winners = [at for at, outcome in enumerate(outcomes) if outcome == ["a"]]
    assert len(winners) == 1
    losers = [outcome for outcome in outcomes if outcome != ["a"]]
    assert all(isinstance(outcome, AlreadyExistsError) for outcome in losers)
    [kept] = await store.get(["a"])
    assert kept.metadata == {"by": winners[0]}


async def test_a_document_has_the_subject_that_it_was_stored_with_and_an_upsert_replaces_it(
    harness: Harness, store: VectorStore
) -> None:
    await store.add(
        [
            Document.from_text("x", id="about", embedding=EAST, subject="bjørn/2"),
            Document.from_text("x", id="plain", embedding=EAST),
        ]
    )
    await harness.reopen()
    store = harness.store("vectors")
    assert [one.subject for one in await store.get(["about", "plain"])] == ["bjørn/2", ""]
    found = {one.id: one.subject for one in await store.search(EAST)}
    assert found == {"about": "bjørn/2", "plain": ""}
    await store.upsert(
        [
            Document.from_text("y", id="about", embedding=EAST),
            Document.from_text("y", id="plain", embedding=EAST, subject="ana"),
        ]
    )
    assert [(one.text, one.subject) for one in await store.get(["about", "plain"])] == [
        ("y", ""),
        ("y", "ana"),
    ]


async def test_a_subject_that_is_not_an_id_is_refused_and_no_document_is_stored(
    harness: Harness, store: VectorStore
) -> None:
    before = await harness.raw("vectors")
    wrong: Any
    for wrong in (None, 7, "a\0b", "x" * 10_000, "holdfast.index"):
        with pytest.raises(InvalidInputError) as raised:
            await store.add([Document.from_text("x", embedding=EAST, subject=wrong)])
        assert raised.value.field == "documents[0].subject"
    assert await harness.raw("vectors") == before


async def test_metadata_comes_back_exactly_as_it_went_in(store: VectorStore) -> None:
    metadata = {"z": 1, "a": [1e16, -0.0, 1, 1.0, True, None, "a\x00b"], "": {"y": {}, "b": []}}
    await store.add([_document("a", EAST, **metadata)])
    [kept], [found] = await store.get(["a"]), await store.search(EAST)
    assert repr(kept.metadata) == repr(found.metadata) == repr(metadata)


async def test_content_of_every_kind_comes_back_exactly_as_it_went_in(store: VectorStore) -> None:
    document = Document(
        [
            TextBlock("a\x00b\U0001f980"),
            ImageBlock(data=b"\x00\xff", media_type="image/png"),
            ToolUseBlock("c1", "search", {"z": 1, "a": [-0.0]}),
            ToolResultBlock("c1", [TextBlock("3 hits")], is_error=True),
            ReasoningBlock("hm", signature="s"),
            DataBlock({"rows": [1, None]}),
            ErrorBlock("late", code="408"),
            UnknownBlock({"type": "hologram", "frames": 3}),
        ],
        "a",
        EAST,
    )
    await store.add([document])
    [found] = await store.search(EAST)
    assert (await store.get(["a"]), found.content) == ([document], document.content)


async def test_an_id_or_a_collection_that_is_not_an_id_is_refused(store: VectorStore) -> None:
    for bad in ("", "a\nb", "x" * 513, None):
        calls = (
            store.add([Document([TextBlock("x")], bad, EAST)]),  # type: ignore[arg-type]
            store.add([_document("a", EAST)], collection=bad),  # type: ignore[arg-type]
            store.upsert([_document("a", EAST)], collection=bad),  # type: ignore[arg-type]
            store.search(EAST, collection=bad),  # type: ignore[arg-type]
            store.get([bad]),  # type: ignore[list-item]
            store.get(["a"], collection=bad),  # type: ignore[arg-type]
            store.delete([bad]),  # type: ignore[list-item]
            store.delete(["a"], collection=bad),  # type: ignore[arg-type]
            store.delete_collection(bad),  # type: ignore[arg-type]
        )
        for call in calls:
            with pytest.raises(InvalidInputError):
                await call
    with pytest.raises(InvalidInputError):
        await store.get("abc")  # type: ignore[arg-type]
    assert await store.list_collections() == []


async def test_what_a_store_returns_is_the_callers_to_mutate(store: VectorStore) -> None:
    document = _document("a", EAST, tags=["x"])
    await store.add([document])
    [got], [found] = await store.get(["a"]), await store.search(EAST, filter={"tags": "x"})
    for result in (got, found):
        result.metadata["tags"].append("y")
        result.content.clear()
    assert got.embedding is not None
    got.embedding[0] = 9.0
    assert await store.get(["a"]) == [document]
    assert await store.search(EAST, filter={"tags": "y"}) == []
    [again] = await store.search(EAST)
    assert (again.metadata, again.content) == (document.metadata, document.content)


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: VectorStore) -> None:
    embedding, metadata = [1.0, 0.0], {"tags": ["x"]}
    document = Document([TextBlock("text of a")], "a", embedding, metadata)
    await store.add([document])
    embedding[0] = 9.0
    metadata["tags"].append("y")
    document.content.clear()
    assert await store.get(["a"]) == [_document("a", EAST, tags=["x"])]


async def test_documents_are_still_there_after_a_reopen(harness: Harness) -> None:
    await harness.store(CONTRACT).add([_document("a", EAST, k=1)], collection="one")
    await harness.reopen()
    store = harness.store(CONTRACT)
    assert await store.list_collections() == ["one"]
    assert await store.get(["a"], collection="one") == [_document("a", EAST, k=1)]
    assert [result.id for result in await store.search(EAST, collection="one")] == ["a"]
