"""Where hostile input can enter a ``BlobIndex``."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.contracts.blob_index import BlobIndex
from holdfast.testing.hostile import REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError

CONTRACT = "blob_index"

_numbers = itertools.count()


async def _put(store: BlobIndex, **changed: Any) -> Any:
    number = next(_numbers)
    facts: dict[str, Any] = {
        "ref": f"ref {number}",
        "object_key": f"key {number}",
        "size_bytes": 3,
        "content_type": "text/plain",
        "sha256": "0" * 64,
        "ttl_seconds": 60,
    }
    facts |= changed
    await store.put(facts.pop("ref"), facts.pop("object_key"), **facts)
    return await store.get(changed.get("ref", f"ref {number}"))


async def _ref(store: BlobIndex, value: Any) -> Any:
    return (await _put(store, ref=value)).ref


async def _object_key(store: BlobIndex, value: Any) -> Any:
    return (await _put(store, object_key=value)).object_key


async def _content_type(store: BlobIndex, value: Any) -> Any:
    return (await _put(store, content_type=value)).info.content_type


async def _sha256(store: BlobIndex, value: Any) -> Any:
    return (await _put(store, sha256=value)).info.sha256


async def _condemn(store: BlobIndex, value: Any) -> Any:
    return await store.condemn([value])


def _unknown(call: Callable[[BlobIndex, Any], Awaitable[Any]]) -> Any:
    """A call with a ref that nothing has: it is refused, or finds nothing."""

    async def use(store: BlobIndex, value: Any) -> Any:
        with contextlib.suppress(NotFoundError):
            assert not await call(store, value)
        return NO_ECHO

    return use


def _short(hostile: Hostile) -> Verdict | None:
    long = isinstance(hostile.value, str) and len(hostile.value) > 255
    return REFUSED if long else None


PROBES = (
    Probe("put.ref", "id", _ref),
    Probe("put.object_key", "id", _object_key),
    Probe("put.content_type", "id", _content_type, judge=_short),
    Probe("put.sha256", "text", _sha256, judge=lambda _hostile: REFUSED),
    Probe("condemn.object_keys", "id", _condemn, expect=lambda value: [value]),
    Probe("get.ref", "id", _unknown(lambda store, value: store.get(value))),
    Probe("pin.ref", "id", _unknown(lambda store, value: store.pin(value))),
    Probe("unpin.ref", "id", _unknown(lambda store, value: store.unpin(value, ttl_seconds=9))),
    Probe("take.ref", "id", _unknown(lambda store, value: store.take(value))),
    Probe("forget.refs", "id", _unknown(lambda store, value: store.forget([value]))),
)
