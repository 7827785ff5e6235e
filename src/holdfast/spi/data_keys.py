"""Wrapped data keys, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DataKey(NamedTuple):
    """A data key of a subject, wrapped by the KEK with the id ``kek``."""

    number: int
    subject: str
    kek: str
    wrapped: bytes


class DataKeyStorage(Protocol):
    """The data keys of one tenant: one for each subject. The caller checks all arguments.

    An erasure destroys them: see ``ErasureStorage.shred``.
    """

    @abstractmethod
    async def add(self, key: DataKey) -> DataKey:
        """Store a key unless its subject has one. Returns the key that the subject has now."""

    @abstractmethod
    async def of_subject(self, subject: str) -> DataKey | None:
        """Return the key of a subject, or ``None``."""

    @abstractmethod
    async def of_numbers(self, numbers: Sequence[int]) -> Sequence[DataKey]:
        """Return the keys with these numbers that are stored, in any order."""

    @abstractmethod
    async def page(self, after: int, limit: int) -> Sequence[DataKey]:
        """Return the keys with a number above ``after``, ascending."""

    @abstractmethod
    async def rewrap(self, key: DataKey, was: str) -> bool:
        """Replace KEK and wrapped bytes of a key if its KEK is ``was``. Returns whether it was."""

    @abstractmethod
    async def tenants(self, kek: str, after: str, limit: int) -> Sequence[str]:
        """Return the tenants above ``after`` that have keys wrapped by another KEK than ``kek``.

        It searches all tenants. They are ascending in the engine's own order of names.
        """
