"""API keys, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, Protocol

from holdfast.values.keys import ApiKey, KeyScope


class KeyDraft(NamedTuple):
    """A new key, with the digest of its text."""

    id: str
    digest: str
    owner: str
    name: str
    scope: KeyScope
    ttl_seconds: float | None


class KeyStorage(Protocol):
    """The API keys of one tenant. The caller checks all arguments.

    A revoked or expired key is not live.
    """

    tenant: str
    """The tenant that owns the keys."""

    @abstractmethod
    async def create(self, draft: KeyDraft) -> ApiKey:
        """Store a key, and return it."""

    @abstractmethod
    async def verify(self, tenant: str, digest: str) -> ApiKey | None:
        """Return a live key of any tenant, as it was before this use.

        The use is recorded, unless the last one was less than ``USE_SECONDS`` ago.
        """

    @abstractmethod
    async def live(self, key_id: str) -> ApiKey | None:
        """Return a live key by its id."""

    @abstractmethod
    async def list_keys(self) -> list[ApiKey]:
        """Return all keys, by when they were created and then by id."""

    @abstractmethod
    async def revoke(self, key_id: str) -> bool:
        """Revoke a key. Returns whether there was one that had not been revoked."""

    @abstractmethod
    async def rotate(
        self, key_id: str, new_id: str, digest: str, grace_seconds: float
    ) -> ApiKey | None:
        """Store a copy of a live key under a new id and digest. ``None`` if the key is not live.

        The old key expires after ``grace_seconds``, or earlier if it would have anyway.
        """

    @abstractmethod
    async def delete(self, key_id: str) -> bool:
        """Delete a key that is not live. Returns whether there was such a key."""
