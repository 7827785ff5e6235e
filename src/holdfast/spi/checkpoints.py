"""Checkpoints, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.errors import ConflictError


@dataclass(frozen=True, slots=True)
class CheckpointPut:
    """A checkpoint to store, with the values of the channels that changed.

    ``labels`` are JSON texts; the labels of ``checkpoint`` must not be read. ``None`` in ``values``
    means that the channel is empty at its version. An empty ``run`` means none. ``expected`` is the
    id of the checkpoint that must be the newest: empty for no checkpoint, ``None`` for any.
    """

    checkpoint: Checkpoint
    labels: Mapping[str, str]
    values: Mapping[str, TypedBytes | None]
    run: str
    expected: str | None
    ttl_seconds: float | None


@dataclass(frozen=True, slots=True)
class CheckpointQuery:
    """Which checkpoints to list: those that meet every condition. ``None`` is no condition.

    Stored thread ids begin with ``begins``, and not with ``begins_not`` unless that is empty.
    ``after`` is the id, thread and namespace of the last checkpoint of the previous page.
    """

    begins: str
    begins_not: str
    thread: str | None
    namespace: str | None
    id: str | None
    before: str | None
    labels: Mapping[str, str]
    after: tuple[str, str, str] | None
    limit: int


class CheckpointStorage(Protocol):
    """The checkpoints of one tenant. The caller checks all arguments.

    The newest checkpoint of a thread and namespace is the one with the greatest id by code points.
    A thread that has expired counts as absent; a write to it begins a new one. ``put`` and
    ``put_writes`` restart its time to live.
    """

    @abstractmethod
    async def put(self, put: CheckpointPut) -> None:
        """Store a checkpoint and its values in one step; a checkpoint with the same id is replaced.

        Raises ``forked`` if ``expected`` is not the newest. The checkpoint itself may be the newest
        if its parent is ``expected``: then the call is a retry.
        """

    @abstractmethod
    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        """Store writes of a checkpoint, which need not be stored yet.

        In ``writes`` no pair of task and index is repeated. A write with an index below zero
        replaces a stored one of the same task and index; any other is then skipped.
        """

    @abstractmethod
    async def get(self, thread: str, namespace: str, id: str | None) -> Checkpoint | None:
        """Return a checkpoint with its values and writes; if ``id`` is ``None``, the newest."""

    @abstractmethod
    async def list(self, query: CheckpointQuery) -> Sequence[Checkpoint]:
        """Return checkpoints by id, the greatest first, then by thread and namespace."""

    @abstractmethod
    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        """Return the ancestors of a checkpoint, the nearest first, each at most once.

        Each has only the values and writes of those ``channels`` that no nearer ancestor has a
        value for. The list ends when every channel has a value, or at the last parent.
        """

    @abstractmethod
    async def delete_threads(self, threads: Sequence[str]) -> int:
        """Delete threads with everything in them, and return how many there were."""

    @abstractmethod
    async def delete_runs(self, runs: Sequence[str], begins: str, begins_not: str) -> int:
        """Delete the checkpoints and writes of runs, and values that no other checkpoint uses.

        Only in threads whose stored ids match ``begins`` and ``begins_not``, as in a query. Returns
        how many checkpoints were deleted.
        """

    @abstractmethod
    async def copy_thread(self, source: str, target: str) -> int:
        """Copy the checkpoints that the target thread does not have. Returns how many were copied.

        The target gets the ``ttl_seconds`` of the source, if the source has one.
        """

    @abstractmethod
    async def prune(self, threads: Sequence[str], keep: int) -> int:
        """Delete all but the newest checkpoints of each namespace and the ancestors they need.

        Some channels have no value at the checkpoint's own version, but have writes in the
        namespace. For these, a checkpoint needs its ancestors up to the one that has the value.
        Values are deleted as in ``delete_runs``.
        """


def forked(thread: str, expected: str, newest: str) -> ConflictError:
    """Return the error of a ``put`` whose expected checkpoint is not the newest.

    >>> print(forked("t1", "c1", "c2"))
    thread 't1': the newest checkpoint is 'c2', not 'c1': read the thread again
    """
    now, wanted = (repr(one) if one else "none" for one in (newest, expected))
    return ConflictError(
        "thread",
        thread,
        f"thread {thread!r}: the newest checkpoint is {now}, not {wanted}: read the thread again",
    )
