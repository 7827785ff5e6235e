"""Where hostile input can enter a ``KeyStore``."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.keys import KeyStore
from holdfast.testing.hostile import KEPT
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError

CONTRACT = "keys"


async def _owner(store: KeyStore, value: Any) -> Any:
    found = await store.verify((await store.create(value)).text)
    return found and found.owner


async def _name(store: KeyStore, value: Any) -> Any:
    found = await store.verify((await store.create("ana", name=value)).text)
    return found and found.name


async def _text(store: KeyStore, value: Any) -> Any:
    assert await store.verify(value) is None
    return NO_ECHO


async def _live(store: KeyStore, value: Any) -> Any:
    assert await store.live(value) is None
    return NO_ECHO


async def _deleted(store: KeyStore, value: Any) -> Any:
    assert await store.delete(value) is False
    return NO_ECHO


async def _rotated(store: KeyStore, value: Any) -> Any:
    try:
        await store.rotate(value)
    except NotFoundError:
        return NO_ECHO
    raise AssertionError("there is no such key")


async def _id(store: KeyStore, value: Any) -> Any:
    assert await store.revoke(value) is False
    return NO_ECHO


PROBES = [
    Probe("create.owner", "id", _owner),
    Probe("create.name", "text", _name),
    # Anybody may send anything as a key: whatever it is, it is none.
    Probe("verify.text", "text", _text, judge=lambda _hostile: KEPT),
    Probe("live.key_id", "id", _live),
    Probe("revoke.key_id", "id", _id),
    Probe("rotate.key_id", "id", _rotated),
    Probe("delete.key_id", "id", _deleted),
]
