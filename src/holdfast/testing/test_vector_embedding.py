"""What every ``VectorStore`` promises about the embeddings of its documents."""

from __future__ import annotations

import math
import struct

import pytest

from holdfast.contracts.vectors import VectorStore
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.testing.embedders import FlakyEmbedder
from holdfast.testing.harness import Harness
from holdfast.values.content import ContentBlock, ImageBlock, TextBlock
from holdfast.values.documents import Document
from holdfast.values.errors import (
    AlreadyExistsError,
    EngineError,
    InvalidInputError,
    NotSupportedError,
)

CONTRACT = "vectors"
pytestmark = pytest.mark.asyncio(loop_scope="session")

EAST = [1.0, 0.0]


def _document(id: str, embedding: list[float] | None = None) -> Document:
    return Document.from_text(f"text of {id}", id=id, embedding=embedding)


async def test_nan_infinite_and_zero_norm_vectors_are_refused(store: VectorStore) -> None:
    await store.add([_document("a", EAST)])
    for bad in ([math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0]):
        with pytest.raises(InvalidInputError):
            await store.add([_document("b", bad)])
        with pytest.raises(InvalidInputError):
            await store.upsert([_document("b", bad)])
        with pytest.raises(InvalidInputError):
            await store.search(bad)
    assert [result.id for result in await store.search(EAST)] == ["a"]


async def test_the_dimension_of_a_collection_is_fixed_by_its_first_vector(
    store: VectorStore,
) -> None:
    with pytest.raises(InvalidInputError):
        await store.add([_document("a", EAST), _document("b", [1.0, 0.0, 0.0])])
    assert await store.list_collections() == []
    await store.add([_document("a", EAST)])
    with pytest.raises(InvalidInputError):
        await store.upsert([_document("a", [1.0, 0.0, 0.0])])
    await store.add([_document("a", [1.0, 0.0, 0.0])], collection="other")


async def test_another_dimension_is_an_error_that_names_both(store: VectorStore) -> None:
    await store.add([_document("a", EAST)])
    with pytest.raises(InvalidInputError, match=r"\b3\b.*\b2\b"):
        await store.add([_document("b", [1.0, 0.0, 0.0])])
    with pytest.raises(InvalidInputError, match=r"\b1\b.*\b2\b"):
        await store.search([1.0])
    # Whatever the order, an id that is there is reported first.
    wrong, there = _document("b", [1.0, 0.0, 0.0]), _document("a", EAST)
    for batch in ([wrong, there], [there, wrong]):
        with pytest.raises(AlreadyExistsError):
            await store.add(batch)


async def test_a_collection_without_documents_forgets_its_dimension(store: VectorStore) -> None:
    await store.add([_document("a", EAST)])
    await store.delete(["a"])
    await store.add([_document("a", [1.0, 0.0, 0.0])])
    await store.delete_collection("default")
    await store.add([_document("a", EAST)])
    assert [result.id for result in await store.search(EAST)] == ["a"]


async def test_embeddings_are_kept_as_32_bit_floats(store: VectorStore) -> None:
    await store.add([_document("a", [0.1, 1 / 3])])
    [kept] = await store.get(["a"])
    assert kept.embedding == list(struct.unpack("2f", struct.pack("2f", 0.1, 1 / 3)))


async def test_a_missing_embedding_is_computed_by_the_embedder_from_the_text_blocks(
    harness: Harness,
) -> None:
    embedder = HashEmbedder(8)
    store = harness.store(CONTRACT, embedder=embedder)
    bare = Document([TextBlock("low "), ImageBlock(url="u"), TextBlock("tide")], "bare")
    [near, far] = await embedder.embed(["low tide", "a green moon"])
    await store.add([_document("far", far), bare])
    [kept] = await store.get(["bare"])
    assert kept.embedding == pytest.approx(near, abs=1e-6)
    assert [result.id for result in await store.search(near)] == ["bare", "far"]


async def test_a_missing_embedding_without_an_embedder_is_not_supported_and_the_error_says_how_to_configure_one(  # noqa: E501 - the promise
    store: VectorStore,
) -> None:
    for write in (store.add, store.upsert):
        with pytest.raises(NotSupportedError, match="configure an embedder"):
            await write([_document("a", EAST), _document("b")])
    assert await store.list_collections() == []


async def test_a_missing_embedding_without_any_text_is_refused(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=HashEmbedder(2))
    contents: list[list[ContentBlock]] = [[], [TextBlock("")], [ImageBlock(url="u")]]
    for content in contents:
        with pytest.raises(InvalidInputError) as refused:
            await store.add([_document("a"), Document(content, "b")])
        assert refused.value.field == "documents[1].content"
    assert await store.list_collections() == []


async def test_an_embedder_that_fails_leaves_nothing_written(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=FlakyEmbedder(2, down=True))
    for write in (store.add, store.upsert):
        with pytest.raises(EngineError):
            await write([_document("a", EAST), _document("b")])
    assert await store.list_collections() == []
