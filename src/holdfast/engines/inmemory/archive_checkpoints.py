"""Converts checkpoints and blobs in memory to archive records, and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.engines.inmemory.blob import BlobBytes
from holdfast.engines.inmemory.blob_index import _Data as _BlobData
from holdfast.engines.inmemory.blob_index import _Row as _Blob
from holdfast.engines.inmemory.checkpoints import _Data as _ThreadData
from holdfast.engines.inmemory.checkpoints import _Namespace, _Row, _Thread
from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.archive import records as of
from holdfast.spi.blob_index import BlobFacts
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.errors import NotFoundError


def dump_threads(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.ThreadRecord]:
    """Yield the threads that have not expired."""
    for key, thread in _live(engine, tenant, at):
        yield of.ThreadRecord(key, thread.ttl_seconds, thread.expires_at)


def load_thread(engine: InMemory, tenant: str, one: of.ThreadRecord) -> None:
    """Store a thread."""
    thread = _Thread(ttl_seconds=one.ttl_seconds, expires_at=one.expires_at)
    engine.table(tenant, _ThreadData).threads.setdefault(one.id, thread)


def dump_checkpoints(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.CheckpointRecord]:
    """Yield the checkpoints."""
    for thread, name, space in _spaces(engine, tenant, at):
        for key in space.ids:
            row, point = space.rows[key], space.rows[key].checkpoint
            yield of.CheckpointRecord(
                thread,
                name,
                key,
                *(point.body.kind, point.body.data),
                *(point.metadata.kind, point.metadata.data),
                parent=point.parent,
                run=row.run,
                labels=dict(sorted(row.labels.items())),
                versions=dict(sorted(point.versions.items())),
            )


def load_checkpoint(engine: InMemory, tenant: str, one: of.CheckpointRecord) -> None:
    """Store a checkpoint."""
    space = _space(engine, tenant, one.thread, one.namespace)
    if one.id not in space.rows:
        body, about = TypedBytes(one.kind, one.body), TypedBytes(one.metadata_kind, one.metadata)
        point = Checkpoint(
            *(one.thread, one.namespace, one.id, one.parent, body, about),
            versions=dict(one.versions),
        )
        space.add(_Row(point, dict(one.labels), one.run))


def dump_values(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.ChannelValueRecord]:
    """Yield the values of channels."""
    for thread, name, space in _spaces(engine, tenant, at):
        for (channel, version), value in sorted(space.values.items(), key=lambda one: one[0]):
            kind, data = (None, None) if value is None else (value.kind, value.data)
            yield of.ChannelValueRecord(thread, name, channel, version, kind, data)


def load_value(engine: InMemory, tenant: str, one: of.ChannelValueRecord) -> None:
    """Store the value of a channel."""
    empty = one.kind is None or one.data is None
    value = None if empty else TypedBytes(one.kind or "", one.data or b"")
    values = _space(engine, tenant, one.thread, one.namespace).values
    values.setdefault((one.channel, one.version), value)


def dump_writes(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.CheckpointWriteRecord]:
    """Yield the writes of tasks."""
    for thread, name, space in _spaces(engine, tenant, at):
        for key, writes in sorted(space.writes.items()):
            for (task, index), one in sorted(writes.items(), key=lambda one: one[0]):
                value = one.value
                yield of.CheckpointWriteRecord(
                    *(thread, name, key, task, index, one.path, one.channel),
                    *(value.kind, value.data),
                )


def load_write(engine: InMemory, tenant: str, one: of.CheckpointWriteRecord) -> None:
    """Store the write of a task."""
    writes = _space(engine, tenant, one.thread, one.namespace).writes.setdefault(one.id, {})
    value = TypedBytes(one.kind, one.data)
    write = Write(one.task, one.index, one.channel, value, one.path)
    writes.setdefault((one.task, one.index), write)


def dump_blobs(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.BlobRecord]:
    """Yield the blobs that have neither expired nor been deleted."""
    for ref, row in sorted(engine.table(tenant, _BlobData).rows.items()):
        info = row.blob.info
        if row.taken_at is None and (info.expires_at is None or info.expires_at > at):
            yield of.BlobRecord(
                *(ref, info.size_bytes, info.content_type, info.sha256),
                *(info.created_at, info.expires_at, info.subject),
            )


def blob_bytes(engine: InMemory, tenant: str, ref: str) -> bytes:
    """Return the bytes of a blob."""
    row = engine.table(tenant, _BlobData).rows[ref]
    return engine.table(tenant, BlobBytes).objects.get(row.blob.object_key, b"")


def load_blob(engine: InMemory, tenant: str, one: of.BlobRecord, data: bytes) -> None:
    """Store a blob with its bytes."""
    index = engine.table(tenant, _BlobData)
    if one.ref in index.rows:
        return
    info = BlobInfo(
        *(one.size_bytes, one.content_type, one.sha256),
        created_at=one.created_at,
        expires_at=one.expires_at,
        pinned=one.expires_at is None,
        subject=one.subject,
    )
    facts = BlobFacts(one.ref, one.size_bytes, one.content_type, one.sha256, one.subject)
    engine.table(tenant, BlobBytes).objects[one.ref] = data
    index.rows[one.ref] = _Blob(facts, IndexedBlob(one.ref, one.ref, info))
    index.refs[one.ref] = one.ref


def _live(engine: InMemory, tenant: str, at: datetime) -> Iterator[tuple[str, _Thread]]:
    for key, thread in sorted(engine.table(tenant, _ThreadData).threads.items()):
        if thread.expires_at is None or thread.expires_at > at:
            yield key, thread


def _spaces(engine: InMemory, tenant: str, at: datetime) -> Iterator[tuple[str, str, _Namespace]]:
    for key, thread in _live(engine, tenant, at):
        for name, space in sorted(thread.namespaces.items()):
            yield key, name, space


def _space(engine: InMemory, tenant: str, thread: str, namespace: str) -> _Namespace:
    stored = engine.table(tenant, _ThreadData).threads.get(thread)
    if stored is None:
        raise NotFoundError("thread", thread)
    return stored.namespaces.setdefault(namespace, _Namespace())
