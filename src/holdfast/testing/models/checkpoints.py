"""A naive ``CheckpointStore``: lists of rows, searched from the front."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.errors import ConflictError


class NaiveCheckpoints:
    """One list each of threads, checkpoints, values and writes; the tenant is a part of all."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.shared = shared
        self.tenant = tenant
        self.threads = shared.table("threads")
        self.rows = shared.table("checkpoints")
        self.values = shared.table("checkpoint values")
        self.writes = shared.table("checkpoint writes")

    def _expire(self) -> None:
        for row in list(self.threads):
            if row["until"] is not None and row["until"] <= self.shared.now:
                self._forget(row["key"])

    def _forget(self, key: tuple[str, str]) -> None:
        for table in (self.threads, self.rows, self.values, self.writes):
            table[:] = [row for row in table if row["key"] != key]

    def _touch(self, thread: str, ttl: float | None = None) -> None:
        self._expire()
        key = (self.tenant, thread)
        if not any(row["key"] == key for row in self.threads):
            self.threads.append({"key": key, "ttl": None, "until": None})
        for row in self.threads:
            if row["key"] == key:
                row["ttl"] = row["ttl"] if ttl is None else ttl
                if row["ttl"] is not None:
                    row["until"] = self.shared.now + timedelta(seconds=row["ttl"])

    def _in(self, thread: str, namespace: str) -> list[Checkpoint]:
        self._expire()
        found = [
            row["checkpoint"]
            for row in self.rows
            if row["key"] == (self.tenant, thread) and row["checkpoint"].namespace == namespace
        ]
        return sorted(found, key=lambda one: one.id)

    def _value(self, thread: str, namespace: str, channel: str, version: str | None) -> Any:
        for row in self.values:
            if (row["key"], row["place"]) == ((self.tenant, thread), (namespace, channel, version)):
                return row["value"]
        return None

    def _full(self, one: Checkpoint, thread: str, channels: Any = None) -> Checkpoint:
        values: dict[str, TypedBytes] = {}
        for channel, version in one.versions.items():
            value = self._value(thread, one.namespace, channel, version)
            if value is not None and (channels is None or channel in channels):
                values[channel] = value
        writes = [
            row["write"]
            for row in self.writes
            if row["key"] == (self.tenant, thread) and row["of"] == (one.namespace, one.id)
        ]
        writes = [write for write in writes if channels is None or write.channel in channels]
        writes.sort(key=lambda write: (write.path, write.task, write.index))
        labels, versions = dict(one.labels), dict(one.versions)
        return replace(
            one,
            thread=thread,
            labels=labels,
            versions=versions,
            values=values,
            writes=tuple(writes),
        )

    async def put(
        self,
        checkpoint: Checkpoint,
        *,
        new_values: Any,
        expected_parent: str | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Drop the row with the id, then add one."""
        one, key = checkpoint, (self.tenant, checkpoint.thread)
        stored = self._in(one.thread, one.namespace)
        if expected_parent is not None:
            newest = stored[-1].id if stored else ""
            retried = newest == one.id and (stored[-1].parent or "") == expected_parent
            if newest != expected_parent and not retried:
                raise ConflictError("thread", one.thread)
        self._touch(one.thread, ttl_seconds)
        for channel, value in new_values.items():
            place = (one.namespace, channel, one.versions[channel])
            self.values[:] = [
                row for row in self.values if (row["key"], row["place"]) != (key, place)
            ]
            self.values.append({"key": key, "place": place, "value": value})
        self.rows[:] = [
            row
            for row in self.rows
            if row["key"] != key
            or (row["checkpoint"].namespace, row["checkpoint"].id) != (one.namespace, one.id)
        ]
        self.rows.append({"key": key, "checkpoint": one})

    async def put_writes(self, thread: str, namespace: str, id: str, writes: list[Write]) -> None:
        """One by one."""
        if writes:
            self._touch(thread)
        key, of = (self.tenant, thread), (namespace, id)
        for write in writes:
            same = [
                row
                for row in self.writes
                if (row["key"], row["of"]) == (key, of)
                and (row["write"].task, row["write"].index) == (write.task, write.index)
            ]
            if same and write.index < 0:
                same[0]["write"] = write
            elif not same:
                self.writes.append({"key": key, "of": of, "write": write})

    async def get(
        self, thread: str, namespace: str = "", id: str | None = None
    ) -> Checkpoint | None:
        """The last of those that fit."""
        found = [one for one in self._in(thread, namespace) if id in (None, one.id)]
        return self._full(found[-1], thread) if found else None

    async def list(
        self,
        *,
        thread: str | None = None,
        namespace: str | None = None,
        id: str | None = None,
        before: str | None = None,
        labels: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[Checkpoint]:
        """All of them, sorted, then those that fit."""
        self._expire()
        rows = sorted(
            (row for row in self.rows if row["key"][0] == self.tenant),
            key=lambda row: (row["key"][1], row["checkpoint"].namespace),
        )
        rows.sort(key=lambda row: row["checkpoint"].id, reverse=True)
        given = 0
        for row in rows:
            one, name = row["checkpoint"], row["key"][1]
            fits = thread in (None, name) and namespace in (None, one.namespace)
            fits = fits and id in (None, one.id) and (before is None or one.id < before)
            for label, value in (labels or {}).items():
                fits = fits and repr(one.labels.get(label, ...)) == repr(value)
            if fits and (limit is None or given < limit):
                given += 1
                yield self._full(one, name)

    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Any
    ) -> Sequence[Checkpoint]:
        """From parent to parent."""
        start = await self.get(thread, namespace, id)
        return self._above(start, thread, channels) if start else []

    def _above(self, one: Checkpoint, thread: str, channels: Any) -> Sequence[Checkpoint]:
        by_id = {other.id: other for other in self._in(thread, one.namespace)}
        left, found, seen = list(channels), [], [one.id]
        while left and one.parent is not None and one.parent in by_id and one.parent not in seen:
            one = by_id[one.parent]
            seen.append(one.id)
            full = self._full(one, thread, left)
            found.append(full)
            left = [channel for channel in left if channel not in full.values]
        return found

    async def delete_threads(self, threads: Any) -> int:
        """Drop every row."""
        self._expire()
        keys = {(self.tenant, thread) for thread in threads}
        there = [row["key"] for row in self.threads if row["key"] in keys]
        for key in there:
            self._forget(key)
        return len(there)

    async def delete_runs(self, runs: Any) -> int:
        """Drop the rows with such a label."""
        self._expire()
        gone = [
            row
            for row in self.rows
            if row["key"][0] == self.tenant and row["checkpoint"].labels.get("run_id") in runs
        ]
        self._drop(gone)
        return len(gone)

    def _drop(self, gone: Sequence[Any]) -> None:
        """Rows, their writes, and what no row of the namespace names any more."""
        spaces = [(row["key"], row["checkpoint"].namespace) for row in gone]
        ids = [
            (key, (space, row["checkpoint"].id))
            for (key, space), row in zip(spaces, gone, strict=True)
        ]
        self.rows[:] = [row for row in self.rows if not any(row is one for one in gone)]
        self.writes[:] = [row for row in self.writes if (row["key"], row["of"]) not in ids]
        named = [
            (row["key"], (row["checkpoint"].namespace, *pair))
            for row in self.rows
            for pair in row["checkpoint"].versions.items()
        ]
        self.values[:] = [
            row
            for row in self.values
            if (row["key"], row["place"][0]) not in spaces or (row["key"], row["place"]) in named
        ]

    async def copy_thread(self, source: str, target: str) -> int:
        """Add each row under the other name, where there is none."""
        self._expire()
        old, new = (self.tenant, source), (self.tenant, target)
        ttls = [row["ttl"] for row in self.threads if row["key"] == old]
        if not ttls:
            return 0
        self._touch(target, ttls[0])
        copied = 0
        for table, same in (
            (self.values, lambda row: row["place"]),
            (self.writes, lambda row: (row["of"], row["write"].task, row["write"].index)),
            (self.rows, lambda row: (row["checkpoint"].namespace, row["checkpoint"].id)),
        ):
            there = [same(row) for row in table if row["key"] == new]
            added = [
                {**row, "key": new} for row in table if row["key"] == old and same(row) not in there
            ]
            table.extend(added)
            copied = len(added)
        return copied

    async def prune(self, threads: Any, *, keep: int = 1) -> int:
        """Mark what stays, drop the others."""
        self._expire()
        gone = []
        for thread in dict.fromkeys(threads):
            rows = [row for row in self.rows if row["key"] == (self.tenant, thread)]
            for space in {row["checkpoint"].namespace for row in rows}:
                stay = []
                for one in self._in(thread, space)[-keep:]:
                    full = self._full(one, thread)
                    written = [
                        row["write"].channel
                        for row in self.writes
                        if (row["key"], row["of"][0]) == ((self.tenant, thread), space)
                    ]
                    empty = [c for c in one.versions if c not in full.values and c in written]
                    stay += [one.id, *(above.id for above in self._above(one, thread, empty))]
                gone += [
                    row
                    for row in rows
                    if row["checkpoint"].namespace == space and row["checkpoint"].id not in stay
                ]
        self._drop(gone)
        return len(gone)
