"""Checkpoints, in process."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.checkpoints import (
    CheckpointPut,
    CheckpointQuery,
    CheckpointStorage,
    forked,
)
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.codec import decode_json


@dataclass
class _Row:
    checkpoint: Checkpoint
    labels: Mapping[str, str]
    run: str


@dataclass
class _Namespace:
    rows: dict[str, _Row] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], TypedBytes | None] = field(default_factory=dict)
    writes: dict[str, dict[tuple[str, int], Write]] = field(default_factory=dict)

    def add(self, row: _Row) -> None:
        new = row.checkpoint.id
        if new not in self.rows:
            insort(self.ids, new)
        self.rows[new] = row

    def value(self, row: _Row, channel: str) -> TypedBytes | None:
        version = row.checkpoint.versions.get(channel)
        return None if version is None else self.values.get((channel, version))

    def view(self, thread: str, row: _Row, channels: Sequence[str] | None = None) -> Checkpoint:
        wanted = row.checkpoint.versions if channels is None else channels
        values = {channel: self.value(row, channel) for channel in wanted}
        writes = self.writes.get(row.checkpoint.id, {}).values()
        return replace(
            row.checkpoint,
            thread=thread,
            labels={key: decode_json(text) for key, text in row.labels.items()},
            versions=dict(row.checkpoint.versions),
            values={channel: value for channel, value in values.items() if value},
            writes=tuple(
                sorted(
                    (one for one in writes if channels is None or one.channel in channels),
                    key=lambda one: (one.path, one.task, one.index),
                )
            ),
        )

    def upwards(self, row: _Row, missing: Sequence[str]) -> Iterator[tuple[_Row, list[str]]]:
        """Yield the ancestors of a row, each with the channels that no nearer one has set."""
        seen, left = {row.checkpoint.id}, list(missing)
        while left and (parent := row.checkpoint.parent) in self.rows and parent not in seen:
            row = self.rows[parent]
            seen.add(parent)
            yield row, left
            left = [channel for channel in left if not self.value(row, channel)]

    def needed(self, keep: int) -> set[str]:
        """Return the ids of the checkpoints that a prune keeps."""
        written = {one.channel for writes in self.writes.values() for one in writes.values()}
        found = set(self.ids[-keep:])
        for row in [self.rows[one] for one in found]:
            missing = [
                channel
                for channel in row.checkpoint.versions
                if channel in written and not self.value(row, channel)
            ]
            found |= {one.checkpoint.id for one, _ in self.upwards(row, missing)}
        return found

    def drop(self, gone: Sequence[str]) -> int:
        for one in gone:
            del self.rows[one], self.ids[bisect_left(self.ids, one)]
            self.writes.pop(one, None)
        named = {pair for row in self.rows.values() for pair in row.checkpoint.versions.items()}
        if gone:
            self.values = {pair: value for pair, value in self.values.items() if pair in named}
        return len(gone)


@dataclass
class _Thread:
    namespaces: dict[str, _Namespace] = field(default_factory=dict)
    ttl_seconds: float | None = None
    expires_at: datetime | None = None


@dataclass
class _Data:
    threads: dict[str, _Thread] = field(default_factory=dict)


class InMemoryCheckpoints(CheckpointStorage):
    """Stores checkpoints in dicts.

    >>> checkpoints = InMemoryCheckpoints(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def put(self, put: CheckpointPut) -> None:
        """Store a checkpoint and the values of its channels."""
        new = put.checkpoint
        present = self._namespace(new.thread, new.namespace)
        newest = present.ids[-1] if present and present.ids else ""
        if put.expected is not None and put.expected != newest:
            again = present.rows[newest].checkpoint if present and newest == new.id else None
            if again is None or (again.parent or "") != put.expected:
                raise forked(new.thread, put.expected, newest)
        space = self._opened(new.thread, put.ttl_seconds).namespaces.setdefault(
            new.namespace, _Namespace()
        )
        for channel, value in put.values.items():
            space.values[channel, new.versions[channel]] = value
        space.add(_Row(replace(new, labels={}), put.labels, put.run))

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        """Store pending writes of a checkpoint."""
        space = self._opened(thread).namespaces.setdefault(namespace, _Namespace())
        stored = space.writes.setdefault(id, {})
        for one in writes:
            if one.index < 0 or (one.task, one.index) not in stored:
                stored[one.task, one.index] = one

    async def get(self, thread: str, namespace: str, id: str | None) -> Checkpoint | None:
        """Return a checkpoint; without ``id``, the newest of the namespace; or ``None``."""
        space = self._namespace(thread, namespace)
        row = space and self._row(space, id)
        return space.view(thread, row) if space and row else None

    async def list(self, query: CheckpointQuery) -> Sequence[Checkpoint]:
        """Return checkpoints, the greatest id first."""
        found = [
            (thread, space, row)
            for thread in sorted(self._data.threads)
            if query.thread in (None, thread)
            and thread.startswith(query.begins)
            and not (query.begins_not and thread.startswith(query.begins_not))
            and (stored := self._present(thread))
            for namespace, space in sorted(stored.namespaces.items())
            if query.namespace in (None, namespace)
            for row in space.rows.values()
            if _is_listed(query, thread, row)
        ]
        # The sort is stable: rows with the same id stay in the order of threads and namespaces.
        found.sort(key=lambda one: one[2].checkpoint.id, reverse=True)
        return [space.view(thread, row) for thread, space, row in found[: query.limit]]

    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        """Return the ancestors of a checkpoint."""
        space = self._namespace(thread, namespace)
        row = space and self._row(space, id)
        if not space or not row:
            return []
        return [space.view(thread, one, left) for one, left in space.upwards(row, channels)]

    async def delete_threads(self, threads: Sequence[str]) -> int:
        """Delete threads. Returns how many there were."""
        there = [thread for thread in threads if self._present(thread)]
        for thread in there:
            del self._data.threads[thread]
        return len(there)

    async def delete_runs(self, runs: Sequence[str], begins: str, begins_not: str) -> int:
        """Delete the checkpoints of runs."""
        return sum(
            space.drop([one for one, row in space.rows.items() if row.run in runs])
            for thread in list(self._data.threads)
            if thread.startswith(begins) and not (begins_not and thread.startswith(begins_not))
            for space in self._spaces(thread)
        )

    async def copy_thread(self, source: str, target: str) -> int:
        """Copy the checkpoints that the target thread does not have. Returns how many."""
        stored = self._present(source)
        if stored is None:
            return 0
        copied, into = 0, self._opened(target, stored.ttl_seconds)
        for name, space in stored.namespaces.items():
            other = into.namespaces.setdefault(name, _Namespace())
            for one, row in space.rows.items():
                if one not in other.rows:
                    other.add(row)
                    copied += 1
            other.values = space.values | other.values
            for one, writes in space.writes.items():
                other.writes[one] = writes | other.writes.get(one, {})
        return copied

    async def prune(self, threads: Sequence[str], keep: int) -> int:
        """Delete all checkpoints but the newest and those that they need. Returns how many."""
        return sum(
            space.drop([one for one in space.rows if one not in needed])
            for thread in threads
            for space in self._spaces(thread)
            for needed in [space.needed(keep)]
        )

    def _present(self, thread: str) -> _Thread | None:
        stored = self._data.threads.get(thread)
        expired = stored and stored.expires_at and stored.expires_at <= self._engine.now()
        return None if expired else stored

    def _spaces(self, thread: str) -> Sequence[_Namespace]:
        stored = self._present(thread)
        return list(stored.namespaces.values()) if stored else []

    def _namespace(self, thread: str, namespace: str) -> _Namespace | None:
        stored = self._present(thread)
        return stored.namespaces.get(namespace) if stored else None

    def _row(self, space: _Namespace, id: str | None) -> _Row | None:
        if id is None:
            return space.rows[space.ids[-1]] if space.ids else None
        return space.rows.get(id)

    def _opened(self, thread: str, ttl_seconds: float | None = None) -> _Thread:
        """Return a thread for a write, created if needed, and restart its time to live."""
        stored = self._present(thread) or _Thread()
        self._data.threads[thread] = stored
        if ttl_seconds is not None:
            stored.ttl_seconds = ttl_seconds
        if stored.ttl_seconds is not None:
            stored.expires_at = self._engine.now() + timedelta(seconds=stored.ttl_seconds)
        return stored


def _is_listed(query: CheckpointQuery, thread: str, row: _Row) -> bool:
    one = row.checkpoint
    if query.after is not None:
        last, *where = query.after
        # The order is id descending, then thread and namespace ascending.
        if one.id > last or (one.id == last and [thread, one.namespace] <= where):
            return False
    return (
        query.id in (None, one.id)
        and (query.before is None or one.id < query.before)
        and query.labels.items() <= row.labels.items()
    )
