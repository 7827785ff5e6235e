"""Random documents with few ids, few directions and few collections."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.documents import Document, SearchResult

COLLECTIONS = st.sampled_from(["one", "two"])
IDS = st.sampled_from(["a", "b", "B", "é", "c"])
VECTORS = st.sampled_from(
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 2.0], [-1.0, 0.5], [3.0, 1.0], [1.0, 0.0, 0.0]]
)
METADATA: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["k", "n"]), st.sampled_from([None, True, 1, 2, "x"])
)
DOCUMENTS = st.builds(
    lambda name, vector, metadata: Document.from_text(
        f"text of {name}", id=name, embedding=vector, metadata=metadata
    ),
    IDS,
    VECTORS,
    METADATA,
)
FILTERS = st.sampled_from(
    [
        None,
        {},
        {"k": None},
        {"k": 1},
        {"k": True, "n": "x"},
        {"n": {"$gt": 1}},
        {"$or": [{"k": "x"}, {"n": 2}]},
        {"$not": {"k": 1}},
        {"$not": {"n": {"$gt": 0}}},
    ]
)


def _rounded(results: list[SearchResult]) -> list[Any]:
    return [
        (found.id, found.text, round(found.score, 6) + 0.0, found.metadata) for found in results
    ]


class VectorMachine(EngineMachine):
    """Documents that are added, replaced, deleted and searched."""

    contract = "vectors"

    @rule(documents=st.lists(DOCUMENTS, max_size=3), collection=COLLECTIONS)
    def add(self, documents: list[Document], collection: str) -> None:
        """New ones, or refused."""
        self.both(lambda store: store.add(documents, collection=collection))

    @rule(documents=st.lists(DOCUMENTS, max_size=2), collection=COLLECTIONS)
    def upsert(self, documents: list[Document], collection: str) -> None:
        """New or replaced."""
        self.both(lambda store: store.upsert(documents, collection=collection))

    @rule(vector=VECTORS, collection=COLLECTIONS, limit=st.integers(0, 6), wanted=FILTERS)
    def search(
        self, vector: list[float], collection: str, limit: int, wanted: dict[str, Any] | None
    ) -> None:
        """The closest that pass."""
        self.both(
            lambda store: store.search(vector, collection=collection, limit=limit, filter=wanted),
            _rounded,
        )

    @rule(ids=st.lists(IDS, max_size=4), collection=COLLECTIONS)
    def get(self, ids: list[str], collection: str) -> None:
        """By id."""
        self.both(lambda store: store.get(ids, collection=collection))

    @rule(ids=st.lists(IDS, max_size=2), collection=COLLECTIONS)
    def delete(self, ids: list[str], collection: str) -> None:
        """By id."""
        self.both(lambda store: store.delete(ids, collection=collection))

    @rule()
    def list_collections(self) -> None:
        """Those with documents."""
        self.both(lambda store: store.list_collections())

    @rule(collection=COLLECTIONS)
    def delete_collection(self, collection: str) -> None:
        """All at once."""
        self.both(lambda store: store.delete_collection(collection))
