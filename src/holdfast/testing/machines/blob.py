"""Random storing, reading, pinning and sweeping of few blobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.blobs import BlobInfo

PICK = st.integers(0, 2)
DATA: st.SearchStrategy[bytes | str] = st.sampled_from([b"", b"abc", b"abc", "é", b"\x00" * 9])
TYPES = st.sampled_from(["application/octet-stream", "text/plain"])


def lifetime(info: BlobInfo) -> int | None:
    """How long a blob lives, in steps of five seconds: a real clock runs between two calls too."""
    if info.expires_at is None:
        return None
    return round((info.expires_at - info.created_at).total_seconds() / 5)


def _seen(info: BlobInfo) -> tuple[Any, ...]:
    """A stat without its times, which differ between two clocks; their distance must not."""
    return info.size_bytes, info.content_type, info.sha256, info.pinned, lifetime(info)


class BlobMachine(EngineMachine):
    """Blobs of a minute that are pinned, unpinned, deleted and left to expire."""

    contract = "blobs"
    options: ClassVar[dict[str, Any]] = {"ttl_seconds": 60}

    def __init__(self) -> None:
        super().__init__()
        self.refs: list[tuple[str, str]] = [("nothing", "nothing")]

    def _on_ref(
        self,
        pick: int,
        call: Callable[[Any, str], Any],
        view: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """One of the last few refs, old and gone ones included."""
        left, right = self.refs[-1 - pick % len(self.refs)]
        self.each(lambda store: call(store, left), lambda store: call(store, right), view)

    @invariant()
    def same_blobs(self) -> None:
        """Both hold the same after every step."""
        for pick in range(3):
            self._on_ref(pick, lambda store, ref: store.stat(ref), _seen)

    @initialize()
    def begin(self) -> None:
        """Have blobs to pin and to lose, whatever comes."""
        self.store(b"abc", "text/plain", {})
        self.store("é", "text/plain", {"pinned": True})

    @rule(
        data=DATA,
        content_type=TYPES,
        how=st.sampled_from([{}, {}, {"pinned": True}, {"ttl_seconds": 60}]),
    )
    def store(self, data: bytes | str, content_type: str, how: dict[str, Any]) -> None:
        """Keep a whole blob, for the usual time, its own, or until it is unpinned."""

        async def call(store: Any) -> Any:
            return await store.store(data, content_type=content_type, **how)

        self.refs.append(self.each(call, call, type))

    @rule(chunks=st.lists(st.sampled_from([b"", b"x", b"yz"]), max_size=3))
    def store_stream(self, chunks: list[bytes]) -> None:
        """Keep a blob in chunks."""

        async def source() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        async def call(store: Any) -> Any:
            return await store.store_stream(source())

        self.refs.append(self.each(call, call, type))

    @rule(pick=PICK)
    def resolve(self, pick: int) -> None:
        """Read a whole blob."""
        self._on_ref(pick, lambda store, ref: store.resolve(ref))

    @rule(pick=PICK, offset=st.integers(0, 4), length=st.none() | st.integers(0, 4))
    def open(self, pick: int, offset: int, length: int | None) -> None:
        """Read a part of a blob."""

        async def read(store: Any, ref: str) -> bytes:
            part = store.open(ref, offset=offset, length=length)
            return b"".join([chunk async for chunk in part])

        self._on_ref(pick, read)

    @rule(pick=PICK)
    def pin(self, pick: int) -> None:
        """Keep a blob for good."""
        self._on_ref(pick, lambda store, ref: store.pin(ref))

    @rule(pick=PICK)
    def unpin(self, pick: int) -> None:
        """Let a blob go."""
        self._on_ref(pick, lambda store, ref: store.unpin(ref))

    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        """Remove a blob."""
        self._on_ref(pick, lambda store, ref: store.delete(ref))

    @rule()
    def sweep(self) -> None:
        """Remove what has expired."""
        self.both(lambda store: store.sweep())

    @rule(seconds=st.sampled_from([5, 30, 60]))
    def wait(self, seconds: int) -> None:
        """Let blobs expire."""
        self.elapse(seconds)
