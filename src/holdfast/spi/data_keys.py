"""Wrapped data keys, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DataKey(NamedTuple):
    """A data key of a subject, wrapped by the KEK with the id ``kek``.

    ``first`` is the number of the subject's first key, or 0 for that key itself.
    """

    number: int
    subject: str
    kek: str
    wrapped: bytes
    first: int = 0


class DataKeyStorage(Protocol):
    """The data keys of one tenant: each subject has a current one, and those that it replaced.

    The caller checks all arguments.

    An erasure destroys all of a subject: see ``ErasureStorage.shred``.
    """

    @abstractmethod
    async def add(self, key: DataKey) -> DataKey:
        """Store a key unless its subject has one. Returns the key that the subject has now."""

    @abstractmethod
    async def of_subject(self, subject: str) -> DataKey | None:
        """Return the current key of a subject, or ``None``."""

    @abstractmethod
    async def replace(self, key: DataKey, was: int) -> bool:
        """Store a key as the current one of its subject if that has the number ``was``.

        The replaced key stays, for the values that it encrypted. Returns whether it was replaced.
        """

    @abstractmethod
    async def current(self, older_than_seconds: float, after: int, limit: int) -> Sequence[DataKey]:
        """Return current keys older than this, with a number above ``after``, ascending."""

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
