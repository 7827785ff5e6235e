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
    """The engine's time of the snapshot: what had expired by then is not part of it."""

    @abstractmethod
    def records(self, kind: str) -> AsyncGenerator[Record, None]:
        """Yield the records of a kind, in the order of their keys.

        Keys compare by code points. Where the class of a record names another order, that order
        counts within its scope.
        """

    @abstractmethod
    def blob(self, ref: str) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a blob in chunks."""


class ArchiveStorage(Protocol):
    """What one engine can dump and load for one tenant. Every record is checked.

    An import is named by the digest of its archive, so that one that was interrupted can continue.
    """

    kinds: frozenset[str]
    """The kinds of records that the engine stores."""

    @abstractmethod
    def snapshot(self) -> AbstractAsyncContextManager[ArchiveSnapshot]:
        """Open a snapshot: all that is read from it is of one moment."""

    @abstractmethod
    async def load(self, kind: str, records: Sequence[Record]) -> None:
        """Store records with their ids, numbers, versions and times.

        A record whose key is there stays as it is there, so that a repeated load has no effect.
        Records of one kind come in their order, and those that they refer to came before.
        """

    @abstractmethod
    async def load_blob(self, record: BlobRecord, chunks: AsyncIterator[bytes]) -> None:
        """Store a blob with its bytes; nothing is stored if ``chunks`` raises."""

    @abstractmethod
    async def begin_import(self, archive: str) -> frozenset[str] | None:
        """Start or continue an import. Returns which segments of it are loaded.

        ``None`` means that it was finished. Raises ``ConflictError("import", …)`` if the tenant
        holds data of other origin.
        """

    @abstractmethod
    async def segment_loaded(self, archive: str, segment: str) -> None:
        """Record that a segment is loaded."""

    @abstractmethod
    async def finish_import(self, archive: str) -> None:
        """Record that all of it is loaded and verified."""
