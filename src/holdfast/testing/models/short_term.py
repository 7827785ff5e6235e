"""A naive ``ShortTerm``: a list of rows, searched from the front."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.errors import InvalidInputError, NotFoundError, VersionConflictError
from holdfast.values.states import StateSnapshot, StateVersion


class NaiveShortTerm:
    """Every write is a new row at the end; the last row of a session is its state."""

    def __init__(self, shared: Shared, *, tenant: str = "default", kept_versions: int = 0) -> None:
        self.shared = shared
        self.kept_versions = kept_versions
        self.tenant = tenant
        self.rows = shared.table("short_term")

    def _last(self, session_id: str) -> tuple[int, dict[str, Any], float | None, datetime | None]:
        found: Any = (0, {}, None, None)
        for number, (tenant, session, state, ttl, expires_at, _) in enumerate(self.rows, 1):
            if (tenant, session) == (self.tenant, session_id):
                found = (number, state, ttl, expires_at)
        if found[1] is None or (found[3] is not None and found[3] <= self.shared.now):
            found = (0, {}, None, None)
        number, state, ttl, expires_at = found
        return number, copy.deepcopy(state), ttl, expires_at

    def _add(
        self,
        session_id: str,
        state: dict[str, Any],
        expected_version: int | None,
        ttl_seconds: float | None,
    ) -> int:
        version, _, ttl, _ = self._last(session_id)
        if version == 0:
            self.rows.append((self.tenant, session_id, None, None, None, None))
        if expected_version is not None and expected_version != version:
            raise VersionConflictError(
                "state", session_id, expected=expected_version, actual=version
            )
        if ttl_seconds is not None:
            ttl = ttl_seconds
        expires_at = None if ttl is None else self.shared.now + timedelta(seconds=ttl)
        now = self.shared.now
        self.rows.append((self.tenant, session_id, copy.deepcopy(state), ttl, expires_at, now))
        return len(self.rows)

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The last row's state."""
        return (await self.snapshot(session_id, keys=keys)).state

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """A new row."""
        return self._add(session_id, state, expected_version, ttl_seconds)

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """A new row made of the last one."""
        if any(key in patch for key in delete_keys):
            raise InvalidInputError("delete_keys", "also patched")
        state = self._last(session_id)[1]
        for key in delete_keys:
            state.pop(key, None)
        state.update(patch)
        return self._add(session_id, state, expected_version, ttl_seconds)

    async def get_many(self, session_ids: Sequence[str]) -> list[StateSnapshot]:
        """The last row of each."""
        return [await self.snapshot(session_id) for session_id in session_ids]

    async def clear(self, session_id: str) -> None:
        """A row that says there is nothing."""
        self.rows.append((self.tenant, session_id, None, None, None, None))

    async def versions(
        self, session_id: str, *, before: int | None = None, limit: int = 100
    ) -> list[StateVersion]:
        """The last rows since the state was cleared or had expired."""
        found: list[StateVersion] = []
        for number, (tenant, session, state, *_, at) in enumerate(self.rows, 1):
            if (tenant, session) == (self.tenant, session_id):
                found = [] if state is None else [StateVersion(number, at), *found]
        if not self._last(session_id)[0] or not self.kept_versions:
            return []
        kept = found[: self.kept_versions]
        return [one for one in kept if before is None or one.version < before][:limit]

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None, at: int | None = None
    ) -> StateSnapshot:
        """The last row, or that of a version."""
        version, state, _, expires_at = self._last(session_id)
        if at == 0 or (at is not None and at != version):
            if at not in [one.version for one in await self.versions(session_id)]:
                raise NotFoundError("state version", f"{session_id}@{at}")
            version, state = at, copy.deepcopy(self.rows[at - 1][2])
        if keys is not None:
            state = {key: value for key, value in state.items() if key in keys}
        return StateSnapshot(state, version, expires_at)
