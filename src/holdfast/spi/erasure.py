"""What an engine implements for erasures: it finds the records of a scope, and keeps receipts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from holdfast.values.erasure import Counts, ErasureKind, ErasureRecord, ErasureScope

Store: TypeAlias = Literal[
    "keys",
    "schedules",
    "tasks",
    "sessions",
    "states",
    "facts",
    "collections",
    "entities",
    "relationships",
    "boards",
    "channels",
    "threads",
    "items",
    "blobs",
]
"""The stores in the order of an erasure: first what could write more, then what was written."""

STORES: Final[tuple[Store, ...]] = get_args(Store)

Key: TypeAlias = tuple[str, ...]
"""The key of one record in its store:

- ``keys``, ``entities``, ``boards``, ``channels``, ``threads``, ``blobs``: its id
- ``relationships``: its id; those about the subject in the graph of somebody else
- ``collections``: its name; or also an id, for one document about the subject in a collection of
  somebody else
- ``schedules``: owner and id
- ``tasks``: its id; also of a deleted task whose files are still there
- ``sessions``: its id; of an agent's scope also the agent, whose events are deleted
- ``states``: the session
- ``facts``: namespace and agent, one key for all their facts; or also an id, for one fact about
  the subject in the memory of somebody else
- ``items``: owner, key, and then the labels of the namespace
"""


class ErasureDraft(NamedTuple):
    """An erasure to start: a new id, the scope, and the number of records by store."""

    id: str
    scope: ErasureScope
    counts: Counts


class LastReceipt(NamedTuple):
    """The newest receipt of a tenant: its number in the chain, and its SHA-256; 0 if none."""

    number: int
    sha256: str


class StoreFinder(Protocol):
    """Finds the records of one tenant in a store that another engine serves."""

    @abstractmethod
    async def find(self, scope: ErasureScope, limit: int | None) -> Sequence[Key]:
        """Return the keys of records in scope, each once; up to ``limit``, or all of them."""


class ErasureStorage(Protocol):
    """Finds the records of one tenant that belong to a scope. The caller checks all arguments."""

    @abstractmethod
    async def find(self, store: Store, scope: ErasureScope, limit: int) -> Sequence[Key]:
        """Return keys of records in scope, up to ``limit``, each once; empty if no record is left.

        Expired records count as long as they are stored.
        """

    @abstractmethod
    async def count(self, scope: ErasureScope) -> Counts:
        """Return how many records each store has in scope; stores without any are left out."""

    @abstractmethod
    async def forks(self, session_id: str) -> Sequence[str]:
        """Return the forks of a session and their forks that have the same owner, by stored ids.

        A fork comes before the session that it was forked from. Forks are found as long as the
        session, its tombstone or the fork itself exists.
        """

    async def sessions_about(self, subject: str) -> Sequence[str]:
        """Return the sessions that were started about a subject, by stored ids.

        Also deleted ones, until ``finish``: more may be stored under their ids. None by default.
        """
        del subject
        return ()

    @abstractmethod
    async def begin(self, draft: ErasureDraft) -> ErasureRecord:
        """Store an erasure, or return the unfinished one of the same scope."""

    @abstractmethod
    async def shred(self, erasure_id: str, scope: ErasureScope) -> Sequence[int]:
        """Destroy the data keys of the scope's subjects, and record their numbers, in one step.

        Returns the numbers of all keys that the erasure has destroyed so far. An agent or a session
        has no key of its own.
        """

    @abstractmethod
    async def last(self) -> LastReceipt:
        """Return the newest receipt."""

    @abstractmethod
    async def forget_rest(self, scope: ErasureScope) -> None:
        """Delete data of the scope that ``find`` does not list: dead letters, indexes, counters."""

    @abstractmethod
    async def finish(
        self, erasure_id: str, number: int, receipt: str, sha256: str
    ) -> ErasureRecord | None:
        """Store the receipt (JSON text) of an erasure and forget its scope, in one step.

        Returns the finished erasure, or ``None`` if another receipt has this number. An erasure
        that was finished before keeps its receipt.
        """

    @abstractmethod
    async def list_erasures(self, limit: int, after_id: str | None) -> Sequence[ErasureRecord]:
        """Return erasures by id ascending, which is the order of their start."""


__all__ = [
    "STORES",
    "Counts",
    "ErasureDraft",
    "ErasureKind",
    "ErasureRecord",
    "ErasureScope",
    "ErasureStorage",
    "Key",
    "LastReceipt",
    "Store",
    "StoreFinder",
]
