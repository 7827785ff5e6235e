"""Checkpoints, on Postgres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.escape import escape, unescape
from holdfast.engines.postgres.queries import filled, load
from holdfast.spi.checkpoints import CheckpointPut, CheckpointQuery, CheckpointStorage
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.codec import decode_json, encode_json

_SQL = load("checkpoints")
_PAGE = (
    "SELECT c.*, '' AS thread, NULL::text[] AS wanted, false AS starts FROM holdfast.checkpoints c"
)
_NEWEST = filled(_SQL["read_one"], {_PAGE: _SQL["newest"]})
_BY_ID = filled(_SQL["read_one"], {_PAGE: _SQL["by_id"]})
_LIST = filled(_SQL["read"], {_PAGE: _SQL["list"]})
_LIST_THREAD = filled(_SQL["read"], {_PAGE: _SQL["list_thread"]})
_ANCESTORS = filled(_SQL["read"], {_PAGE: _SQL["ancestors"]})
_VALUES = ("channels", "kinds", "datas")
_WRITES = ("tasks", "indexes", "written", "written_kinds", "written_datas", "paths")


class PostgresCheckpoints(CheckpointStorage):
    """Stores checkpoints of graphs: one row for each checkpoint, channel value and pending write.

    ::

        checkpoints = PostgresCheckpoints(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def put(self, put: CheckpointPut) -> None:
        """Store a checkpoint and the values of its channels."""
        new = put.checkpoint
        # Sorted, so that two clients that put the same values do not deadlock.
        channels = sorted(put.values)
        values = [put.values[channel] for channel in channels]
        await self._engine.fetch(
            _SQL["put"],
            *(self._tenant, new.thread, new.namespace, new.id, new.parent, put.run or None),
            *(*new.body, *new.metadata, _labels(put.labels), encode_json(dict(new.versions))),
            *(channels, [new.versions[channel] for channel in channels]),
            [value and value.kind for value in values],
            [value and value.data for value in values],
            *(put.expected, put.ttl_seconds),
            safe=False,
        )

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        """Store pending writes of a checkpoint."""
        rows = [
            (one.task, one.index, escape(one.path), one.channel, *one.value)
            for one in sorted(writes, key=lambda one: (one.task, one.index))
        ]
        columns = map(list, zip(*rows, strict=True))
        where = (self._tenant, thread, namespace, id)
        await self._engine.fetch(_SQL["put_writes"], *where, *columns, safe=False)

    async def get(self, thread: str, namespace: str, id: str | None) -> Checkpoint | None:
        """Return a checkpoint; without ``id``, the newest of the namespace; or ``None``."""
        where = (self._tenant, thread, namespace)
        if id is None:
            rows = await self._engine.fetch(_NEWEST, *where, safe=True)
        else:
            rows = await self._engine.fetch(_BY_ID, *where, id, safe=True)
        return _one(rows) if rows else None

    async def list(self, query: CheckpointQuery) -> Sequence[Checkpoint]:
        """Return checkpoints, the greatest id first."""
        after, thread, namespace = query.after or (None, None, None)
        which = (query.namespace, query.id, query.before, _labels(query.labels), after)
        if query.thread is not None:
            where = (*which, namespace, query.limit)
            rows = await self._engine.fetch(
                _LIST_THREAD, self._tenant, query.thread, *where, safe=True
            )
        else:
            begins, after_it = (query.begins, query.begins_not), (thread, namespace)
            rows = await self._engine.fetch(
                _LIST, self._tenant, *begins, *which, *after_it, query.limit, safe=True
            )
        return [_listed(row) for row in rows]

    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        """Return the ancestors of a checkpoint."""
        wanted = sorted(set(channels))
        rows = await self._engine.fetch(
            _ANCESTORS, self._tenant, thread, namespace, id, wanted, safe=True
        )
        start = next((row for row in rows if row["starts"]), None)
        if start is None:
            return []
        # Of a checkpoint that is reached twice, keep the first row: it has the most channels.
        above: dict[str, Any] = {}
        for row in sorted(rows, key=lambda row: len(row["wanted"])):
            above[row["id"]] = row
        del above[start["id"]]
        found, parent = [], start["parent"]
        while row := above.pop(parent, None):
            found.append(_listed(row))
            parent = row["parent"]
        return found

    async def delete_threads(self, threads: Sequence[str]) -> int:
        """Delete threads. Returns how many there were."""
        return await self._count(_SQL["delete_threads"], list(threads))

    async def delete_runs(self, runs: Sequence[str], begins: str, begins_not: str) -> int:
        """Delete the checkpoints of runs."""
        return await self._count(_SQL["delete_runs"], list(runs), begins, begins_not)

    async def copy_thread(self, source: str, target: str) -> int:
        """Copy the checkpoints that the target thread does not have. Returns how many."""
        return await self._count(_SQL["copy"], source, target)

    async def prune(self, threads: Sequence[str], keep: int) -> int:
        """Delete all checkpoints but the newest and those that they need. Returns how many."""
        return await self._count(_SQL["prune"], list(threads), keep)

    async def _count(self, sql: LiteralString, *args: Any) -> int:
        return int(await self._engine.fetchval(sql, self._tenant, *args, safe=False))


def _labels(labels: Any) -> str:
    """Return labels as a JSON object of JSON texts, so that they compare exactly."""
    return encode_json({escape(key): text for key, text in labels.items()})


def _one(rows: Sequence[Any]) -> Checkpoint:
    """Return the checkpoint of a statement that returns a row for each value and write."""
    values, writes, found = {}, [], rows[0]
    for row in rows:
        data = TypedBytes(row["kind"], row["data"])
        if row["part"] == 1:
            values[row["name"]] = data
        elif row["part"] == 2:
            path = unescape(row["parent"])
            writes.append(Write(row["id"], row["index"], row["name"], data, path))
        else:
            found = row
    if len(writes) > 1:
        writes.sort(key=lambda one: (one.path, one.task, one.index))
    return _checkpoint(found, found["name"], found["data"], values, writes)


def _listed(row: Any) -> Checkpoint:
    """Return the checkpoint of a row that has its values and writes in arrays."""
    values = {channel: TypedBytes(kind, data) for channel, kind, data in _zipped(row, *_VALUES)}
    writes = [
        Write(task, index, channel, TypedBytes(kind, data), unescape(path))
        for task, index, channel, kind, data, path in _zipped(row, *_WRITES)
    ]
    return _checkpoint(row, row["thread"], row["body"], values, writes)


def _checkpoint(
    row: Any, thread: str, body: bytes, values: dict[str, TypedBytes], writes: Sequence[Write]
) -> Checkpoint:
    labels = decode_json(row["labels"])
    return Checkpoint(
        thread,
        row["namespace"],
        row["id"],
        row["parent"],
        TypedBytes(row["kind"], body),
        TypedBytes(row["metadata_kind"], row["metadata"]),
        {unescape(key): decode_json(text) for key, text in labels.items()},
        decode_json(row["versions"]),
        values,
        tuple(writes),
    )


def _zipped(row: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Zip the arrays in some columns of a row; ``NULL`` counts as an empty array."""
    return zip(*(row[column] or () for column in columns), strict=True)
