"""Dump and load: how an engine writes and reads the records of an archive."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from holdfast.spi.archive.records import BlobRecord, Record


class ArchiveSnapshot(Protocol):
    """The records of one tenant as they were at one moment."""

    at: datetime
    """The time of the snapshot by the engine's clock; records that had expired are left out."""

    @abstractmethod
    def records(self, kind: str) -> AsyncGenerator[Record, None]:
        """Yield the records of a kind, in the order of their keys.

        Keys are compared by code points. If the docstring of a record class names another order,
        the records are in that order within their scope.
        """

    @abstractmethod
    def blob(self, ref: str) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a blob in chunks."""


class ArchiveStorage(Protocol):
    """What one engine can dump and load for one tenant. The caller checks all records.

    An import is named by the digest of its archive, so that one that was interrupted can continue.
    """

    kinds: frozenset[str]
    """The kinds of records that the engine stores."""

    @abstractmethod
    def snapshot(self) -> AbstractAsyncContextManager[ArchiveSnapshot]:
        """Open a snapshot: all reads from it see the data of one moment."""

    @abstractmethod
    async def load(self, kind: str, records: Sequence[Record]) -> None:
        """Store records with their ids, numbers, versions and times.

        A record whose key is already stored is skipped, so that a repeated load has no effect. The
        caller passes the records of a kind in order, after those that they refer to.
        """

    @abstractmethod
    async def load_blob(self, record: BlobRecord, chunks: AsyncIterator[bytes]) -> None:
        """Store a blob with its bytes; nothing is stored if ``chunks`` raises."""

    @abstractmethod
    async def begin_import(self, archive: str) -> frozenset[str] | None:
        """Start or continue an import. Returns which segments of it are loaded.

        Returns ``None`` if the import was finished before. Raises ``ConflictError("import", …)`` if
        the tenant has other data.
        """

    @abstractmethod
    async def segment_loaded(self, archive: str, segment: str) -> None:
        """Record that a segment is loaded."""

    @abstractmethod
    async def finish_import(self, archive: str) -> None:
        """Record that the whole archive is loaded and verified."""
