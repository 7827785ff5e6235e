"""Random life and death of few refs over few objects."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from holdfast.testing.machines.blob import lifetime
from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.blobs import IndexedBlob

REFS = st.sampled_from(["r1", "r2"])
KEYS = st.sampled_from(["k1", "k2", "k3"])
TTLS = st.sampled_from([20, 60])


def _seen(value: Any) -> Any:
    """A blob without its times, which differ between two clocks; their distance must not."""
    match value:
        case list():
            # What expired at the same moment comes in any order.
            return sorted(map(_seen, value), key=repr)
        case IndexedBlob(ref, key, info):
            return ref, key, info.size_bytes, info.pinned, lifetime(info)
    return value


class BlobIndexMachine(EngineMachine):
    """Refs that are put, pinned, taken, forgotten, and objects that are condemned."""

    contract = "blob_index"

    @rule(ref=REFS, key=KEYS, size=st.integers(1, 2), ttl=TTLS)
    def put(self, ref: str, key: str, size: int, ttl: int) -> None:
        """Make a ref, or clash with one."""
        self.both(
            lambda store: store.put(
                ref,
                key,
                size_bytes=size,
                content_type="a/b",
                sha256="0" * 64,
                ttl_seconds=ttl,
            ),
            lambda info: (info.size_bytes, info.pinned),
        )

    @invariant()
    def same_refs(self) -> None:
        """Both hold the same after every step."""
        self.both(lambda store: store.get("r1"), _seen)
        self.both(lambda store: store.get("r2"), _seen)

    @rule(ref=REFS)
    def pin(self, ref: str) -> None:
        """Keep."""
        self.both(lambda store: store.pin(ref))

    @rule(ref=REFS, ttl=TTLS)
    def unpin(self, ref: str, ttl: int) -> None:
        """Let go."""
        self.both(lambda store: store.unpin(ref, ttl_seconds=ttl))

    @rule(ref=REFS)
    def take(self, ref: str) -> None:
        """Hide."""
        self.both(lambda store: store.take(ref), _seen)

    @rule()
    def take_expired(self) -> None:
        """Hide what has expired."""
        self.both(lambda store: store.take_expired(retry_seconds=30), _seen)

    @rule(refs=st.lists(REFS, max_size=3))
    def forget(self, refs: list[str]) -> None:
        """Drop what is hidden."""
        self.both(lambda store: store.forget(refs))

    @rule(key=KEYS)
    def condemn(self, key: str) -> None:
        """Bar a key, or not."""
        self.both(lambda store: store.condemn([key, f"{key} of nobody"]))

    @rule(seconds=st.sampled_from([5, 20, 60]))
    def wait(self, seconds: int) -> None:
        """Let refs expire."""
        self.elapse(seconds)
