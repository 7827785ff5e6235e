"""Checkpoints of graphs that run in steps, as agents and frameworks use them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.checkpoint_checks import check_put, check_writes
from holdfast.contracts.front import Front
from holdfast.spi.checkpoints import CheckpointPut, CheckpointQuery, CheckpointStorage
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.checks import (
    check_count,
    check_id,
    check_ids,
    check_list,
    check_optional_count,
    check_optional_id,
    check_seconds,
)
from holdfast.values.codec import encode_fields
from holdfast.values.errors import InvalidInputError

PAGE = 100
"""How many checkpoints ``list`` reads at a time."""


@runtime_checkable
class CheckpointStore(Protocol):
    """The state of a graph after each of its steps, by thread, and the writes between two steps.

    A thread has namespaces: ``""`` is that of the graph itself, others belong to its subgraphs. A
    checkpoint names a version of each channel; a value is stored once per channel and version, so
    that a step stores only what it changes. Bodies, metadata and values are a kind and bytes, which
    no store interprets. Labels are JSON; the order of their keys is not promised. The newest
    checkpoint is the one with the greatest id, by code points.

    Promises:

    - a checkpoint comes back as it was put
    - an unknown checkpoint is none
    - without an id get returns the checkpoint with the greatest id
    - a namespace has its own checkpoints
    - a checkpoint has the values of the versions that it names
    - a value of none records that a channel is empty at its version
    - a checkpoint put again replaces the first
    - a new value of a channel without a version is refused
    - values and writes on a checkpoint that is put are refused
    - a checkpoint that is its own parent is refused
    - bytes come back exactly as they went in
    - a put with the expected parent is done
    - a put with another expected parent is a conflict and writes nothing
    - an empty expected parent means that there must be no checkpoint yet
    - a put that is retried with its expected parent is done
    - of many who put with one expected parent one wins
    - writes come back by path, task and index
    - a write at an index of zero or more is stored once
    - a write at an index below zero replaces the earlier one
    - writes may be put before their checkpoint
    - no writes are no change
    - an index that is not a whole number of 32 bits is refused
    - list goes by id downwards over all threads and namespaces
    - list takes only what meets every condition
    - list compares labels as JSON
    - before takes only lesser ids
    - a limit of zero is an empty result
    - list reads any number of checkpoints
    - ancestors are the parents upwards to the last channel without a value
    - an ancestor has only the channels that are still without a value
    - ancestors that are not there or go round end the way
    - delete_threads deletes threads with all they have
    - delete_runs deletes the checkpoints of runs and keeps values that others name
    - copy_thread copies all that the target does not have
    - a thread cannot be copied to itself
    - prune leaves the newest checkpoints of each namespace
    - prune keeps the ancestors that a channel without a value needs
    - prune drops values that no checkpoint names
    - a keep of zero is refused
    - a thread without ttl_seconds never expires
    - a thread expires when its ttl_seconds have passed
    - every write starts the window again
    - a read does not start the window again
    - a thread written after expiry has nothing of the old one
    - a ttl_seconds of zero or less is refused
    - an id that is not an id is refused
    - a label that is not json is refused by its path and nothing is written
    - one thread never sees another's checkpoints
    - one tenant never sees another's checkpoints
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a checkpoint is still there after a reopen
    """

    @abstractmethod
    async def put(
        self,
        checkpoint: Checkpoint,
        *,
        new_values: Mapping[str, TypedBytes | None],
        expected_parent: str | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Store a checkpoint and the values of the channels that changed, in one step.

        ``None`` as a value means that the channel is empty. ``expected_parent`` is the id that the
        newest checkpoint of the namespace must have, or ``""`` if there must be none; otherwise
        ``put`` raises ``ConflictError``, so that two workers cannot continue from the same
        checkpoint. ``ttl_seconds`` applies to the whole thread. ::

            await checkpoints.put(checkpoint, new_values={"log": TypedBytes("json", b"[1]")})
        """
        ...

    @abstractmethod
    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        """Store what tasks wrote after the checkpoint ``id``.

        ::

            await checkpoints.put_writes("t1", "", "c1", [Write("task", 0, "log", value)])
        """
        ...

    @abstractmethod
    async def get(
        self, thread: str, namespace: str = "", id: str | None = None
    ) -> Checkpoint | None:
        """Return a checkpoint, or ``None``, with its values and writes; without ``id`` the newest.

        ::

            newest = await checkpoints.get("t1")
        """
        ...

    @abstractmethod
    def list(
        self,
        *,
        thread: str | None = None,
        namespace: str | None = None,
        id: str | None = None,
        before: str | None = None,
        labels: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Checkpoint]:
        """Yield checkpoints by id, the greatest first; ``before`` selects those with lesser ids.

        ::

            async for one in checkpoints.list(thread="t1", labels={"source": "loop"}): ...
        """
        ...

    @abstractmethod
    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        """Return the ancestors of a checkpoint, nearest first, until each channel has a value.

        Use it for channels whose state is their last stored value and the writes since then. ::

            above = await checkpoints.ancestors("t1", "", "c9", ["messages"])
        """
        ...

    @abstractmethod
    async def delete_threads(self, threads: Sequence[str]) -> int:
        """Delete threads. Returns how many there were.

        ::

            await checkpoints.delete_threads(["t1"])
        """
        ...

    @abstractmethod
    async def delete_runs(self, runs: Sequence[str]) -> int:
        """Delete the checkpoints whose label ``run_id`` is one of these. Returns how many.

        ::

            await checkpoints.delete_runs(["run-1"])
        """
        ...

    @abstractmethod
    async def copy_thread(self, source: str, target: str) -> int:
        """Copy a thread. Returns how many checkpoints were copied.

        ::

            await checkpoints.copy_thread("t1", "t1-copy")
        """
        ...

    @abstractmethod
    async def prune(self, threads: Sequence[str], *, keep: int = 1) -> int:
        """Delete all but the newest checkpoints of each namespace. Returns how many.

        If a channel has no value at a kept checkpoint, its ancestors up to the one that has the
        value are kept, too. ::

            await checkpoints.prune(["t1"], keep=3)
        """
        ...


class Checkpoints(Front, CheckpointStore):
    """Implements ``CheckpointStore``: checks the arguments, then calls the engine's storage.

    ::

        checkpoints = Checkpoints(PostgresCheckpoints(engine, tenant="acme"))
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    async def put(
        self,
        checkpoint: Checkpoint,
        *,
        new_values: Mapping[str, TypedBytes | None],
        expected_parent: str | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Store a checkpoint and the values of the channels that changed."""
        checked, values = check_put(checkpoint, new_values)
        thread = self._scope.id("checkpoint.thread", checked.thread)
        labels = encode_fields(dict(checkpoint.labels), field="checkpoint.labels")
        self._limits.check_value("checkpoint.labels", *labels, *labels.values())
        run = checkpoint.labels.get("run_id")
        await self._storage.put(
            CheckpointPut(
                checked if thread == checked.thread else replace(checked, thread=thread),
                labels,
                values,
                check_optional_id("checkpoint.labels.run_id", run) if isinstance(run, str) else "",
                None
                if expected_parent is None
                else check_optional_id("expected_parent", expected_parent),
                None if ttl_seconds is None else check_seconds("ttl_seconds", ttl_seconds),
            )
        )

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        """Store what tasks wrote after the checkpoint ``id``."""
        where = self._where(thread, namespace)
        checked = check_writes(writes)
        check_id("id", id)
        if checked:
            await self._storage.put_writes(*where, id, checked)

    async def get(
        self, thread: str, namespace: str = "", id: str | None = None
    ) -> Checkpoint | None:
        """Return a checkpoint with its values and writes."""
        where = self._where(thread, namespace)
        found = await self._storage.get(*where, None if id is None else check_id("id", id))
        return found and self._own(found)

    def list(
        self,
        *,
        thread: str | None = None,
        namespace: str | None = None,
        id: str | None = None,
        before: str | None = None,
        labels: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Checkpoint]:
        """Yield checkpoints by id, the greatest first."""
        wanted: Any = {} if labels is None else labels
        query = CheckpointQuery(
            *self._scope.threads(),
            None if thread is None else self._scope.id("thread", thread),
            None if namespace is None else check_optional_id("namespace", namespace),
            None if id is None else check_id("id", id),
            None if before is None else check_id("before", before),
            encode_fields(dict(wanted) if isinstance(wanted, Mapping) else wanted, field="labels"),
            None,
            PAGE,
        )
        return self._pages(query, check_optional_count("limit", limit))

    async def _pages(self, query: CheckpointQuery, limit: int | None) -> AsyncIterator[Checkpoint]:
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = await self._storage.list(replace(query, limit=size))
            for one in page:
                yield self._own(one)
            if len(page) < size:
                return
            left = None if left is None else left - size
            last = page[-1]
            query = replace(query, after=(last.id, last.thread, last.namespace))

    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        """Return the ancestors of a checkpoint, nearest first, until each channel has a value."""
        where = self._where(thread, namespace)
        start = None if id is None else check_id("id", id)
        wanted = check_ids("channels", channels)
        found = await self._storage.ancestors(*where, start, wanted) if wanted else []
        return [self._own(one) for one in found]

    async def delete_threads(self, threads: Sequence[str]) -> int:
        """Delete threads."""
        stored = self._threads(threads)
        return await self._storage.delete_threads(stored) if stored else 0

    async def delete_runs(self, runs: Sequence[str]) -> int:
        """Delete the checkpoints of runs."""
        checked = check_ids("runs", runs)
        begins = self._scope.threads()
        return await self._storage.delete_runs(checked, *begins) if checked else 0

    async def copy_thread(self, source: str, target: str) -> int:
        """Copy a thread."""
        if source == target:
            raise InvalidInputError("target", "must be another thread than the source")
        return await self._storage.copy_thread(
            self._scope.id("source", source), self._scope.id("target", target)
        )

    async def prune(self, threads: Sequence[str], *, keep: int = 1) -> int:
        """Delete all but the newest checkpoints of each namespace."""
        if check_count("keep", keep) == 0:
            raise InvalidInputError("keep", "must be 1 or more: delete_threads deletes all")
        stored = self._threads(threads)
        return await self._storage.prune(stored, keep) if stored else 0

    def _where(self, thread: object, namespace: object) -> tuple[str, str]:
        return self._scope.id("thread", thread), check_optional_id("namespace", namespace)

    def _threads(self, threads: object) -> Sequence[str]:
        listed = check_list("threads", threads)
        return sorted({self._scope.id(f"threads[{at}]", one) for at, one in enumerate(listed)})

    def _own(self, checkpoint: Checkpoint) -> Checkpoint:
        if not self._scope.owner:
            return checkpoint
        return replace(checkpoint, thread=self._scope.own(checkpoint.thread))
