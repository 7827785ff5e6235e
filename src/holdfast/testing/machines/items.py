"""Random puts, reads and searches of few items in few namespaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut

LABELS = st.sampled_from(["a", "b", "é"])
PATHS = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["x", "y", "Z"])
VALUES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"n": 1}, {"n": 1.5, "t": "\x00"}, {"n": [1, "a"]}, {"o": {"n": None}}]
)
VECTORS = st.sampled_from(
    [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [-1.0, 0.5], [1.0, 2.0, 3.0], [0.0, 0.0, 2.0]]
)
FILTERS: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
    [
        *(None, None, {"n": 1}, {"n": {"$gt": 1}}, {"t": "\x00"}, {"o.n": None}),
        *({"n": {"$equals": [1, "a"]}}, {"$not": {"n": {"$exists": True}}}),
    ]
)
PATTERNS = st.lists(st.none() | LABELS, max_size=2)
PUTS = st.lists(
    st.builds(
        ItemPut,
        PATHS,
        KEYS,
        VALUES,
        st.lists(VECTORS, max_size=2),
        st.sampled_from([None, None, 60]),
        st.sampled_from([None, None, None, None, 0, 1]),
        st.sampled_from(["", "ana"]),
    )
    | st.builds(ItemPut, PATHS, KEYS, st.none()),
    max_size=3,
    unique_by=lambda put: (put.namespace, put.key),
)


class ItemsMachine(EngineMachine):
    """Items that are put, overwritten, deleted, read and found, and expire."""

    contract = "items"

    @rule(puts=PUTS)
    def put_many(self, puts: list[ItemPut]) -> None:
        """Write some, or none."""
        # An expected version of one stands for that of the item, which differs between the two.
        self.both(lambda store: _put(store, puts), _deleted)

    @rule(keys=st.lists(st.builds(ItemKey, PATHS, KEYS), max_size=3), refresh=st.booleans())
    def get_many(self, keys: list[ItemKey], *, refresh: bool) -> None:
        """Read some."""
        self.both(
            lambda store: store.get_many(keys, refresh=refresh),
            lambda found: [item and _seen(item) for item in found],
        )

    @rule(
        prefix=st.lists(LABELS, max_size=2).map(tuple),
        filter=FILTERS,
        vector=st.none() | VECTORS,
        limit=st.integers(0, 4),
        offset=st.integers(0, 3),
        refresh=st.booleans(),
    )
    def search(self, prefix: Any, **how: Any) -> None:
        """Find some."""
        self.both(lambda store: store.search(prefix, **how), _hits)

    @rule(
        prefix=PATTERNS,
        suffix=PATTERNS,
        max_depth=st.none() | st.integers(1, 3),
        limit=st.integers(0, 3),
        offset=st.integers(0, 2),
    )
    def list_namespaces(self, **how: Any) -> None:
        """List some namespaces."""
        self.both(lambda store: store.list_namespaces(**how))

    @rule(seconds=st.sampled_from([1, 50]))
    def wait(self, seconds: int) -> None:
        """Let windows close."""
        self.elapse(seconds)

    @invariant()
    def same_items(self) -> None:
        """Both hold the same after every step, in the same order of versions."""
        self.both(lambda store: store.search((), limit=100), _hits)
        self.both(lambda store: store.list_namespaces())


async def _put(store: Any, puts: list[ItemPut]) -> list[int]:
    found = await store.get_many([ItemKey(put.namespace, put.key) for put in puts])
    versions: list[int] = await store.put_many(
        [
            replace(put, expected_version=item.version)
            if item and put.expected_version == 1
            else put
            for put, item in zip(puts, found, strict=True)
        ]
    )
    return versions


def _deleted(versions: list[int]) -> list[bool]:
    return [version == 0 for version in versions]


def _seen(item: Item) -> Any:
    """An item without what differs between the two: times and versions."""
    return (item.namespace, item.key, repr(item.value), item.subject, item.expires_at is None)


def _hits(hits: list[ItemHit]) -> list[Any]:
    scores = [None if hit.score is None else round(hit.score, 9) for hit in hits]
    return [(_seen(hit.item), score) for hit, score in zip(hits, scores, strict=True)]
