"""Working states, as agents use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.contracts.front import Front
from holdfast.kernel.storage.short_term import ShortTerm, StateSnapshot, StateWrite
from holdfast.spi.states import StateStorage
from holdfast.values.checks import (
    check_list,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.values.codec import encode_fields
from holdfast.values.errors import InvalidInputError


class States(Front, ShortTerm):
    """``ShortTerm`` on any engine; ``ttl_seconds`` is for writes that do not give their own.

    ::

        short_term = States(PostgresStates(engine, tenant="acme"), ttl_seconds=86_400)
    """

    def __init__(self, storage: StateStorage, *, ttl_seconds: float | None = None) -> None:
        self._storage = storage
        self._ttl_seconds = ttl_seconds

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``."""
        session, wanted = self._wanted(session_id, keys)
        if wanted is not None and not wanted:
            return {}
        return (await self._storage.read(session, wanted)).state

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state."""
        session = self._scope.id("session_id", session_id)
        values = self._fields("state", state)
        expected = check_optional_count("expected_version", expected_version)
        window = self._window(ttl_seconds)
        write = StateWrite(session, values, ttl_seconds=window, fresh=True)
        await self._storage.write(write, expected)

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
        session = self._scope.id("session_id", session_id)
        values = self._fields("patch", patch)
        dropped = _keys("delete_keys", delete_keys)
        if not dropped.isdisjoint(values):
            raise InvalidInputError("delete_keys", "names a key of the patch: choose one of them")
        expected = check_optional_count("expected_version", expected_version)
        window = self._window(ttl_seconds)
        await self._storage.write(StateWrite(session, values, tuple(dropped), window), expected)

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session."""
        await self._storage.clear(self._scope.id("session_id", session_id))

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        found = await self._storage.read(*self._wanted(session_id, keys))
        return self._scope.own_state(found)

    def _wanted(self, session_id: object, keys: object) -> tuple[str, set[str] | None]:
        session = self._scope.id("session_id", session_id)
        return session, None if keys is None else _keys("keys", keys)

    def _fields(self, field: str, state: dict[str, Any]) -> dict[str, str]:
        values = encode_fields(state, field=field)
        self._limits.check_value(field, *values, *values.values())
        return values

    def _window(self, ttl_seconds: float | None) -> float | None:
        ttl = self._ttl_seconds if ttl_seconds is None else ttl_seconds
        return None if ttl is None else check_seconds("ttl_seconds", ttl)


def _keys(field: str, keys: object) -> set[str]:
    """Top-level keys of a state: a list of any texts."""
    return {check_text(f"{field}[{at}]", key) for at, key in enumerate(check_list(field, keys))}
