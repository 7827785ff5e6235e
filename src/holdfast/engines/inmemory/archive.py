"""Export and import of the in-memory engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.engines.inmemory import archive_checkpoints as points
from holdfast.engines.inmemory import archive_memory as memory
from holdfast.engines.inmemory import archive_stores as stores
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.tasks import archive as tasks
from holdfast.spi.archive.conflicts import holds_data
from holdfast.spi.archive.kinds import KINDS
from holdfast.spi.archive.records import BlobRecord, Record
from holdfast.spi.archive.storage import ArchiveSnapshot, ArchiveStorage

_Dump: TypeAlias = Callable[[InMemory, str, datetime], Iterator[Any]]
_Load: TypeAlias = Callable[[InMemory, str, Sequence[Any]], None]


def _each(load: Callable[[InMemory, str, Any], None]) -> _Load:
    def loads(engine: InMemory, tenant: str, records: Sequence[Any]) -> None:
        for record in records:
            load(engine, tenant, record)

    return loads


def _only_with_bytes(engine: InMemory, tenant: str, record: BlobRecord) -> None:
    """Do nothing: ``load_blob`` stores a blob together with its bytes."""


_KINDS: dict[str, tuple[_Dump, _Load]] = {
    "data_keys": (stores.dump_data_keys, _each(stores.load_data_key)),
    "sessions": (memory.dump_sessions, _each(memory.load_session)),
    "deleted_sessions": (memory.dump_deleted_sessions, _each(memory.load_deleted_session)),
    "events": (memory.dump_events, _each(memory.load_event)),
    "states": (memory.dump_states, _each(memory.load_state)),
    "earlier_states": (memory.dump_earlier_states, _each(memory.load_earlier_state)),
    "facts": (memory.dump_facts, _each(memory.load_fact)),
    "documents": (stores.dump_documents, _each(stores.load_document)),
    "entities": (stores.dump_entities, _each(stores.load_entity)),
    "relationships": (stores.dump_relationships, _each(stores.load_relationship)),
    "blobs": (points.dump_blobs, _each(_only_with_bytes)),
    "boards": (stores.dump_boards, _each(stores.load_board)),
    "channels": (stores.dump_channels, _each(stores.load_channel)),
    "channel_events": (stores.dump_channel_events, _each(stores.load_channel_event)),
    "threads": (points.dump_threads, _each(points.load_thread)),
    "checkpoints": (points.dump_checkpoints, _each(points.load_checkpoint)),
    "channel_values": (points.dump_values, _each(points.load_value)),
    "checkpoint_writes": (points.dump_writes, _each(points.load_write)),
    "items": (stores.dump_items, _each(stores.load_item)),
    "contexts": (tasks.dump_contexts, _each(tasks.load_context)),
    "tasks": (tasks.dump_tasks, _each(tasks.load_task)),
    "task_events": (tasks.dump_events, tasks.load_events),
    "feedback": (tasks.dump_feedback, _each(tasks.load_feedback)),
    "inbox": (tasks.dump_inbox, _each(tasks.load_inbox)),
    "push_configs": (tasks.dump_push_configs, _each(tasks.load_push_config)),
    "deliveries": (tasks.dump_deliveries, _each(tasks.load_delivery)),
    "cleanup": (tasks.dump_cleanup, _each(tasks.load_cleanup)),
    "schedules": (stores.dump_schedules, _each(stores.load_schedule)),
    "keys": (stores.dump_keys, _each(stores.load_key)),
}


@dataclass
class _Imports:
    """The loaded segments of imports, by archive; ``None`` once an import is finished."""

    segments: dict[str, set[str] | None] = field(default_factory=dict)


class _Snapshot(ArchiveSnapshot):
    def __init__(self, engine: InMemory, tenant: str) -> None:
        self.at = engine.now()
        self._lines = {kind: list(_KINDS[kind][0](engine, tenant, self.at)) for kind in _KINDS}
        self._blobs = {
            one.ref: points.blob_bytes(engine, tenant, one.ref) for one in self._lines["blobs"]
        }

    async def records(self, kind: str) -> AsyncGenerator[Record, None]:
        for record in self._lines[kind]:
            yield record

    async def blob(self, ref: str) -> AsyncGenerator[bytes, None]:
        yield self._blobs[ref]


class InMemoryArchive(ArchiveStorage):
    """Exports and imports the data of one tenant in memory; a snapshot is a copy.

    >>> archive = InMemoryArchive(InMemory(), tenant="acme")
    """

    kinds = frozenset(_KINDS)

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        self._imports = engine.table(tenant, _Imports).segments

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[ArchiveSnapshot]:
        """Copy all records without an await in between, so that the copy is consistent."""
        yield _Snapshot(self._engine, self._tenant)

    async def load(self, kind: str, records: Sequence[Record]) -> None:
        """Store records of one kind."""
        _KINDS[kind][1](self._engine, self._tenant, records)

    async def load_blob(self, record: BlobRecord, chunks: AsyncIterator[bytes]) -> None:
        """Read all chunks, then store them."""
        data = b"".join([chunk async for chunk in chunks])
        points.load_blob(self._engine, self._tenant, record, data)

    async def begin_import(self, archive: str) -> frozenset[str] | None:
        """Start or continue an import."""
        if archive not in self._imports:
            at = self._engine.now()
            for kind in KINDS:
                if next(_KINDS[kind.name][0](self._engine, self._tenant, at), None) is not None:
                    raise holds_data(self._tenant, kind.name)
            self._imports[archive] = set()
        loaded = self._imports[archive]
        return None if loaded is None else frozenset(loaded)

    async def segment_loaded(self, archive: str, segment: str) -> None:
        """Record that a segment is loaded."""
        loaded = self._imports.get(archive)
        if loaded is not None:
            loaded.add(segment)

    async def finish_import(self, archive: str) -> None:
        """Record that the whole archive is loaded."""
        self._imports[archive] = None
