"""Working states that expire when they rest, without every writer saying so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.storage.short_term import ShortTerm, StateSnapshot


class ExpiringStates(ShortTerm):
    """``ShortTerm`` whose writes have a time to live unless they give their own.

    ::

        states = ExpiringStates(short_term, ttl_seconds=86_400)
    """

    def __init__(self, inner: ShortTerm, *, ttl_seconds: float) -> None:
        self._inner = inner
        self._ttl_seconds = ttl_seconds

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``."""
        return await self._inner.get_state(session_id, keys=keys)

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state."""
        ttl = self._ttl_seconds if ttl_seconds is None else ttl_seconds
        await self._inner.set_state(
            session_id, state, expected_version=expected_version, ttl_seconds=ttl
        )

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Merge ``patch`` into the state."""
        ttl = self._ttl_seconds if ttl_seconds is None else ttl_seconds
        await self._inner.update_state(
            session_id,
            patch,
            delete_keys=delete_keys,
            expected_version=expected_version,
            ttl_seconds=ttl,
        )

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session."""
        await self._inner.clear(session_id)

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        return await self._inner.snapshot(session_id, keys=keys)
