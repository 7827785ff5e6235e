"""The state of sessions, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_id, check_optional_count, check_seconds
from holdfast.kernel.core.codec import decode_json, encode_fields
from holdfast.kernel.core.errors import VersionConflictError
from holdfast.kernel.storage.short_term import (
    ShortTerm,
    StateSnapshot,
    check_keys,
    check_patch,
)


@dataclass
class _State:
    values: dict[str, str]
    version: int
    ttl_seconds: float | None
    expires_at: datetime | None


@dataclass
class _Data:
    states: dict[str, _State] = field(default_factory=dict)
    last_version: int = 0


class InMemoryShortTerm(ShortTerm):
    """``ShortTerm`` in a dict: each value as the codec's text.

    >>> short_term = InMemoryShortTerm(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``."""
        return (await self.snapshot(session_id, keys=keys)).state

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state."""
        check_id("session_id", session_id)
        values = encode_fields(state, field="state")
        self._write(session_id, values, expected_version, ttl_seconds)

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Merge a patch into the state."""
        check_id("session_id", session_id)
        values, dropped = check_patch(patch, delete_keys)
        present = self._present(session_id)
        if present:
            kept = {key: text for key, text in present.values.items() if key not in dropped}
            values = kept | values
        self._write(session_id, values, expected_version, ttl_seconds)

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session."""
        self._data.states.pop(check_id("session_id", session_id), None)

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        check_id("session_id", session_id)
        wanted = None if keys is None else check_keys("keys", keys)
        present = self._present(session_id)
        if present is None:
            return StateSnapshot({})
        texts = present.values
        if wanted is not None:
            texts = {key: texts[key] for key in wanted if key in texts}
        state = {key: decode_json(text) for key, text in texts.items()}
        return StateSnapshot(state, present.version, present.expires_at)

    def _write(
        self,
        session_id: str,
        values: dict[str, str],
        expected_version: int | None,
        ttl_seconds: float | None,
    ) -> None:
        expected = check_optional_count("expected_version", expected_version)
        window = None if ttl_seconds is None else check_seconds("ttl_seconds", ttl_seconds)
        present = self._present(session_id)
        actual = present.version if present else 0
        if expected is not None and expected != actual:
            raise VersionConflictError("state", session_id, expected=expected, actual=actual)
        if window is None and present:
            window = present.ttl_seconds
        expires_at = None if window is None else self._engine.now() + timedelta(seconds=window)
        self._data.last_version += 1
        self._data.states[session_id] = _State(values, self._data.last_version, window, expires_at)

    def _present(self, session_id: str) -> _State | None:
        state = self._data.states.get(session_id)
        if state and state.expires_at and state.expires_at <= self._engine.now():
            del self._data.states[session_id]
            return None
        return state
