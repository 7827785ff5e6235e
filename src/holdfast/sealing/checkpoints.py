"""Encrypted checkpoints: bodies, metadata, values, writes and labels are encrypted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.sealing.blind import Blind
from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal, Sealer
from holdfast.spi.checkpoints import CheckpointPut, CheckpointQuery, CheckpointStorage
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.codec import encode_json
from holdfast.values.errors import InvalidInputError
from holdfast.values.owners import split_owned
from holdfast.values.sealed import SEALED, is_sealed


class SealedCheckpoints(CheckpointStorage):
    """Encrypts what a ``CheckpointStorage`` stores.

    The key is that of the subject of the session with the thread's id. Equal labels of one owner
    are encrypted to the same bytes with the owner's key, so that ``list`` finds them. ::

        checkpoints = SealedCheckpoints(PostgresCheckpoints(engine), sealing)
    """

    def __init__(self, inner: CheckpointStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal

    async def put(self, put: CheckpointPut) -> None:
        """Store a checkpoint and values."""
        made = put.checkpoint
        self._seal.check("checkpoint.labels", *put.labels.values())
        for value in (made.body, made.metadata, *filter(None, put.values.values())):
            _check_kind(value)
        sealer, blind = await self._seal.session_sealer(made.thread), await self._seal.blind()
        labels = await self._sealer(made.thread)
        if sealer is not None and labels is not None and blind is not None:
            values = {
                channel: value and sealer.typed(_value(channel, made), value)
                for channel, value in put.values.items()
            }
            body = sealer.typed(_part(made, "body"), made.body)
            metadata = sealer.typed(_part(made, "metadata"), made.metadata)
            put = dataclasses.replace(
                put,
                checkpoint=dataclasses.replace(made, body=body, metadata=metadata),
                labels=_labels(labels, blind, put.labels),
                values=values,
            )
        await self._inner.put(put)

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        """Store writes of a checkpoint."""
        for one in writes:
            _check_kind(one.value)
        sealer = await self._seal.session_sealer(thread)
        if sealer is not None:
            writes = [
                dataclasses.replace(one, value=sealer.typed(_write(id, one), one.value))
                for one in writes
            ]
        await self._inner.put_writes(thread, namespace, id, writes)

    async def get(self, thread: str, namespace: str, id: str | None) -> Checkpoint | None:
        """Return a checkpoint."""
        found = await self._inner.get(thread, namespace, id)
        return None if found is None else (await self._open([found]))[0]

    async def list(self, query: CheckpointQuery) -> Sequence[Checkpoint]:
        """Return checkpoints by id."""
        sealer, blind = await self._sealer(query.thread or query.begins), await self._seal.blind()
        if query.labels and sealer is not None and blind is not None:
            query = dataclasses.replace(query, labels=_labels(sealer, blind, query.labels))
        return await self._open(await self._inner.list(query))

    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        """Return the ancestors of a checkpoint."""
        return await self._open(await self._inner.ancestors(thread, namespace, id, channels))

    async def delete_threads(self, threads: Sequence[str]) -> int:
        """Delete threads."""
        return await self._inner.delete_threads(threads)

    async def delete_runs(self, runs: Sequence[str], begins: str, begins_not: str) -> int:
        """Delete the checkpoints of runs."""
        return await self._inner.delete_runs(runs, begins, begins_not)

    async def copy_thread(self, source: str, target: str) -> int:
        """Copy a thread."""
        return await self._inner.copy_thread(source, target)

    async def prune(self, threads: Sequence[str], keep: int) -> int:
        """Delete all but the newest checkpoints."""
        return await self._inner.prune(threads, keep)

    async def _sealer(self, thread: str) -> Sealer | None:
        return await self._seal.sealer(split_owned(thread)[0])

    async def _open(self, found: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        opener = await self._seal.opener(*(one for each in found for one in _contents(each)))
        if opener.is_plain:
            return found
        return [_opened(opener, one) for one in found]


def _labels(sealer: Sealer, blind: Blind, labels: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for key, text in labels.items():
        digest = blind.digest("label", key)
        content = f"[{encode_json(key)},{text}]"
        found[digest] = sealer.json(_label(digest), content, again=True)
    return found


def _label(digest: str) -> Place:
    # Equal labels must be equal: they are not bound to their checkpoint.
    return Place("checkpoint", "", f"label {digest}")


def _part(checkpoint: Checkpoint, field: str) -> Place:
    return Place("checkpoint", checkpoint.id, field)


def _value(channel: str, checkpoint: Checkpoint) -> Place:
    # Later checkpoints have the same value at the same version.
    return Place("checkpoint value", channel, checkpoint.versions.get(channel, ""))


def _write(id: str, write: Write) -> Place:
    return Place("checkpoint write", id, encode_json([write.task, write.index, write.channel]))


def _check_kind(value: TypedBytes) -> None:
    if value.kind == SEALED:
        raise InvalidInputError("kind", f"must not be {SEALED!r}: the name is reserved")


def _contents(one: Checkpoint) -> Iterator[Any]:
    yield from (one.body, one.metadata, *one.labels.values(), *one.values.values())
    yield from (write.value for write in one.writes)


def _opened(opener: Opener, one: Checkpoint) -> Checkpoint:
    owner, _ = split_owned(one.thread)
    labels = {key: value for key, value in one.labels.items() if not is_sealed(value)}
    for digest, sealed in one.labels.items():
        if is_sealed(sealed):
            key, plain = opener.json(owner, _label(digest), sealed)
            labels[key] = plain
    return dataclasses.replace(
        one,
        body=opener.typed(owner, _part(one, "body"), one.body),
        metadata=opener.typed(owner, _part(one, "metadata"), one.metadata),
        labels=labels,
        values={
            channel: opener.typed(owner, _value(channel, one), value)
            for channel, value in one.values.items()
        },
        writes=tuple(
            dataclasses.replace(
                write, value=opener.typed(owner, _write(one.id, write), write.value)
            )
            for write in one.writes
        ),
    )
