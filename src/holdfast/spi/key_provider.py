"""Keys that encrypt keys: what a key management service implements for sealed mode."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class KeyProvider(Protocol):
    """Wraps and unwraps data keys by key-encrypting keys (KEKs), which it knows by their ids.

    Holdfast never sees a KEK. A service such as a KMS is one class of yours; pass an object of it
    to ``holdfast.open(seal=…)``. Its errors should be ``UnavailableError`` if a retry may help. ::

        class Kms(KeyProvider):
            name = "kms"

            @property
            def current(self) -> str:
                return "alias/holdfast-2026-11"

            async def wrap(self, kek: str, key: bytes, context: bytes) -> bytes: ...

            async def unwrap(self, kek: str, wrapped: bytes, context: bytes) -> bytes: ...
    """

    name: str
    """Its name in ``holdfast doctor``; it must not have secrets in it."""

    @property
    @abstractmethod
    def current(self) -> str:
        """The id of the KEK that new data keys are wrapped with."""

    @abstractmethod
    async def wrap(self, kek: str, key: bytes, context: bytes) -> bytes:
        """Encrypt a data key of 32 bytes; ``context`` is authenticated and not secret.

        ::

            wrapped = await provider.wrap(provider.current, key, b"acme")
        """

    @abstractmethod
    async def unwrap(self, kek: str, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt a data key. Raises ``SealedError`` for an unknown KEK or another context.

        ::

            key = await provider.unwrap("2026-11", wrapped, b"acme")
        """
