"""Where hostile input can enter a ``Blobs``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from holdfast.contracts.blobs import Blobs
from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError

CONTRACT = "blobs"


async def _data(store: Blobs, value: Any) -> Any:
    return await store.resolve(await store.store(value))


async def _chunk(store: Blobs, value: Any) -> Any:
    async def chunks() -> AsyncIterator[Any]:
        yield b"abc"
        yield value

    return await store.resolve(await store.store_stream(chunks()))


async def _content_type(store: Blobs, value: Any) -> Any:
    return (await store.stat(await store.store(b"abc", content_type=value))).content_type


async def _stream_content_type(store: Blobs, value: Any) -> Any:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"abc"

    return (await store.stat(await store.store_stream(chunks(), content_type=value))).content_type


async def _open(store: Blobs, value: Any) -> None:
    async for _ in store.open(value):
        raise AssertionError("there is no such blob")


def _unknown(call: Callable[[Blobs, Any], Awaitable[Any]]) -> Any:
    """A call with a ref that nothing has: it is refused, or finds nothing."""

    async def use(store: Blobs, value: Any) -> Any:
        with contextlib.suppress(NotFoundError):
            assert not await call(store, value)
        return NO_ECHO

    return use


def _bytes_too(hostile: Hostile) -> Verdict | None:
    return KEPT if isinstance(hostile.value, bytes) else None


def _bytes_only(hostile: Hostile) -> Verdict | None:
    return KEPT if isinstance(hostile.value, bytes) else REFUSED


def _short(hostile: Hostile) -> Verdict | None:
    long = isinstance(hostile.value, str) and len(hostile.value) > 255
    return REFUSED if long else None


def _as_bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value


PROBES = (
    Probe("store.data", "text", _data, expect=_as_bytes, judge=_bytes_too),
    Probe("store_stream.chunks", "text", _chunk, expect=b"abc".__add__, judge=_bytes_only),
    Probe("store.content_type", "id", _content_type, judge=_short),
    Probe("store_stream.content_type", "id", _stream_content_type, judge=_short),
    Probe("resolve.ref", "id", _unknown(lambda store, value: store.resolve(value))),
    Probe("pin.ref", "id", _unknown(lambda store, value: store.pin(value))),
    Probe("unpin.ref", "id", _unknown(lambda store, value: store.unpin(value))),
    Probe("stat.ref", "id", _unknown(lambda store, value: store.stat(value))),
    Probe("delete.ref", "id", _unknown(lambda store, value: store.delete(value))),
    Probe("open.ref", "id", _unknown(_open)),
)
