"""Where hostile input can enter a ``ShortTerm``."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.short_term import ShortTerm
from holdfast.testing.hostile import KEPT, TEXTS
from holdfast.testing.probes.probe import NO_ECHO, Probe

CONTRACT = "short_term"


async def _set_state_id(store: ShortTerm, value: Any) -> Any:
    await store.set_state(value, {"id": value})
    return (await store.get_state(value))["id"]


async def _update_state_id(store: ShortTerm, value: Any) -> Any:
    await store.update_state(value, {"id": value})
    return (await store.snapshot(value)).state["id"]


async def _get_state_id(store: ShortTerm, value: Any) -> Any:
    await store.get_state(value)
    return NO_ECHO


async def _snapshot_id(store: ShortTerm, value: Any) -> Any:
    await store.snapshot(value)
    return NO_ECHO


async def _versions_id(store: ShortTerm, value: Any) -> Any:
    await store.versions(value)
    return NO_ECHO


async def _get_many_id(store: ShortTerm, value: Any) -> Any:
    await store.get_many([value])
    return NO_ECHO


async def _clear_id(store: ShortTerm, value: Any) -> Any:
    await store.clear(value)
    return NO_ECHO


async def _state(store: ShortTerm, value: Any) -> Any:
    await store.set_state("s1", value)
    return await store.get_state("s1")


async def _patch(store: ShortTerm, value: Any) -> Any:
    await store.update_state("s2", value)
    return await store.get_state("s2", keys=list(value))


async def _all_texts_as_keys(store: ShortTerm) -> None:
    await store.set_state("s3", {text.value: 1 for text in TEXTS if text.verdict is KEPT})


async def _keys(store: ShortTerm, value: Any) -> Any:
    return list(await store.get_state("s3", keys=[value]))


async def _snapshot_keys(store: ShortTerm, value: Any) -> Any:
    return list((await store.snapshot("s3", keys=[value])).state)


async def _delete_keys(store: ShortTerm, value: Any) -> Any:
    await store.update_state("s3", {}, delete_keys=[value])
    return value in await store.get_state("s3")


PROBES = (
    Probe("set_state.session_id", "id", _set_state_id),
    Probe("update_state.session_id", "id", _update_state_id),
    Probe("get_state.session_id", "id", _get_state_id),
    Probe("snapshot.session_id", "id", _snapshot_id),
    Probe("versions.session_id", "id", _versions_id),
    Probe("get_many.session_ids", "id", _get_many_id),
    Probe("clear.session_id", "id", _clear_id),
    Probe("set_state.state", "object", _state),
    Probe("update_state.patch", "object", _patch),
    Probe("get_state.keys", "text", _keys, _all_texts_as_keys, lambda value: [value]),
    Probe("snapshot.keys", "text", _snapshot_keys, _all_texts_as_keys, lambda value: [value]),
    Probe("update_state.delete_keys", "text", _delete_keys, _all_texts_as_keys, lambda _: False),
)
