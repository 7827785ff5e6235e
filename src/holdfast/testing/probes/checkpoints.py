"""Where hostile input can enter a ``CheckpointStore``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.testing.hostile import KEPT, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write

CONTRACT = "checkpoints"
VALUE = TypedBytes("json", b"1")
ONE = Checkpoint("t1", "", "c1", None, VALUE, VALUE)


def _put(change: Callable[[Any], Checkpoint], read: Callable[[Checkpoint], Any]) -> Any:
    """Put a changed checkpoint, and read what was changed."""

    async def use(store: CheckpointStore, value: Any) -> Any:
        one = change(value)
        await store.put(one, new_values={})
        found = await store.get(one.thread, one.namespace, one.id)
        return found and read(found)

    return use


async def _value_channel(store: CheckpointStore, value: Any) -> Any:
    versions = {value: "1"} if isinstance(value, str) else {"a": "1"}
    channel: Any = value if isinstance(value, (str, int, bytes)) or value is None else ("x",)
    await store.put(replace(ONE, versions=versions), new_values={channel: VALUE})
    found = await store.get("t1")
    return found and next(iter(found.values))


async def _value_kind(store: CheckpointStore, value: Any) -> Any:
    new = {"a": TypedBytes(value, b"1")}
    await store.put(replace(ONE, versions={"a": "1"}), new_values=new)
    found = await store.get("t1")
    return found and found.values["a"].kind


async def _version(store: CheckpointStore, value: Any) -> Any:
    await store.put(replace(ONE, versions={"a": value}), new_values={"a": VALUE})
    found = await store.get("t1")
    return found and found.versions["a"]


def _write(change: Callable[[Any], Write], read: Callable[[Write], Any]) -> Any:
    """Put one write, and read what was changed."""

    async def use(store: CheckpointStore, value: Any) -> Any:
        await store.put_writes("t1", "", "c1", [change(value)])
        found = await store.get("t1")
        assert found is not None
        return next((read(one) for one in found.writes if read(one) == value), None)

    return use


def _reads(call: Callable[[CheckpointStore, Any], Any]) -> Any:
    """A call that finds nothing, or is refused."""

    async def use(store: CheckpointStore, value: Any) -> Any:
        assert not await call(store, value)
        return NO_ECHO

    return use


def _lists(field: str) -> Any:
    async def use(store: CheckpointStore, value: Any) -> Any:
        _ = [one async for one in store.list(**{field: value})]
        return NO_ECHO

    return use


async def _labels(store: CheckpointStore, value: Any) -> Any:
    await store.put(replace(ONE, labels=value), new_values={})
    # All that can be stored can be looked for.
    [found] = [one async for one in store.list(labels=value)]
    return found.labels


async def _one(store: CheckpointStore) -> None:
    await store.put(ONE, new_values={})


def _keep_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


def _writes_of(task: Any = "k", channel: Any = "a", kind: Any = "json", path: Any = "") -> Write:
    return Write(task, -1, channel, TypedBytes(kind, b"1"), path)


PROBES = (
    Probe("put.thread", "id", _put(lambda v: replace(ONE, thread=v), lambda one: one.thread)),
    Probe(
        "put.namespace",
        "optional_id",
        _put(lambda v: replace(ONE, namespace=v), lambda one: one.namespace),
    ),
    Probe("put.id", "id", _put(lambda v: replace(ONE, id=v), lambda one: one.id)),
    Probe(
        "put.parent",
        "id",
        _put(lambda v: replace(ONE, parent=v), lambda one: one.parent),
        judge=_keep_none,
    ),
    Probe(
        "put.body.kind",
        "id",
        _put(lambda v: replace(ONE, body=TypedBytes(v, b"")), lambda one: one.body.kind),
    ),
    Probe(
        "put.metadata.kind",
        "id",
        _put(lambda v: replace(ONE, metadata=TypedBytes(v, b"")), lambda one: one.metadata.kind),
    ),
    Probe("put.labels", "object", _labels),
    Probe("put.versions", "id", _version),
    Probe("put.new_values", "id", _value_channel),
    Probe("put.new_values.kind", "id", _value_kind),
    Probe(
        "put_writes.task", "id", _write(lambda v: _writes_of(task=v), lambda one: one.task), _one
    ),
    Probe(
        "put_writes.channel",
        "id",
        _write(lambda v: _writes_of(channel=v), lambda one: one.channel),
        _one,
    ),
    Probe(
        "put_writes.kind",
        "id",
        _write(lambda v: _writes_of(kind=v), lambda one: one.value.kind),
        _one,
    ),
    Probe(
        "put_writes.path", "text", _write(lambda v: _writes_of(path=v), lambda one: one.path), _one
    ),
    Probe("put_writes.thread", "id", _reads(lambda s, v: s.put_writes(v, "", "c", [_writes_of()]))),
    Probe(
        "put_writes.namespace",
        "optional_id",
        _reads(lambda s, v: s.put_writes("t", v, "c", [_writes_of()])),
    ),
    Probe("put_writes.id", "id", _reads(lambda s, v: s.put_writes("t", "", v, [_writes_of()]))),
    Probe("get.thread", "id", _reads(lambda s, v: s.get(v))),
    Probe("get.namespace", "optional_id", _reads(lambda s, v: s.get("t", v))),
    Probe("get.id", "id", _reads(lambda s, v: s.get("t", "", v)), judge=_keep_none),
    Probe("list.thread", "id", _lists("thread"), judge=_keep_none),
    Probe("list.namespace", "optional_id", _lists("namespace"), judge=_keep_none),
    Probe("list.id", "id", _lists("id"), judge=_keep_none),
    Probe("list.before", "id", _lists("before"), judge=_keep_none),
    Probe("ancestors.thread", "id", _reads(lambda s, v: s.ancestors(v, "", None, ["a"]))),
    Probe("ancestors.namespace", "optional_id", _reads(lambda s, v: s.ancestors("t", v, None, []))),
    Probe(
        "ancestors.id",
        "id",
        _reads(lambda s, v: s.ancestors("t", "", v, ["a"])),
        judge=_keep_none,
    ),
    Probe("ancestors.channels", "id", _reads(lambda s, v: s.ancestors("t", "", None, [v]))),
    Probe("delete_threads.threads", "id", _reads(lambda s, v: s.delete_threads([v]))),
    Probe("delete_runs.runs", "id", _reads(lambda s, v: s.delete_runs([v]))),
    Probe("copy_thread.source", "id", _reads(lambda s, v: s.copy_thread(v, "other"))),
    Probe("copy_thread.target", "id", _reads(lambda s, v: s.copy_thread("other", v))),
    Probe("prune.threads", "id", _reads(lambda s, v: s.prune([v]))),
)
