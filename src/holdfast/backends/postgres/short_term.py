"""The state of sessions, on Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.escape import escape, unescape
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id, check_optional_count, check_seconds
from holdfast.kernel.core.codec import decode_json, encode_fields, encode_json
from holdfast.kernel.storage.short_term import (
    ShortTerm,
    StateSnapshot,
    check_keys,
    check_patch,
)

_SQL = load("short_term")


class PostgresShortTerm(ShortTerm):
    """``ShortTerm`` in one row per session: an object of the values' JSON texts.

    ::

        short_term = PostgresShortTerm(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

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
        await self._write(session_id, values, None, expected_version, ttl_seconds)

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
        await self._write(session_id, values, dropped, expected_version, ttl_seconds)

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session."""
        check_id("session_id", session_id)
        await self._engine.fetch(_SQL["clear"], self._tenant, session_id, safe=False)

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        check_id("session_id", session_id)
        wanted = None if keys is None else [escape(key) for key in check_keys("keys", keys)]
        row = await self._row(session_id, wanted)
        if row is None:
            return StateSnapshot({})
        stored = row["state"]
        if wanted is None:
            texts = decode_json(stored)
        else:
            values = [stored] if len(wanted) == 1 else stored
            texts = {key: text for key, text in zip(wanted, values, strict=True) if text}
        state = {unescape(key): decode_json(text) for key, text in texts.items()}
        return StateSnapshot(state, row["version"], row["expires_at"])

    async def _row(self, session_id: str, wanted: list[str] | None) -> Any:
        if wanted is None:
            return await self._engine.fetchrow(_SQL["read"], self._tenant, session_id, safe=True)
        if len(wanted) == 1:
            return await self._engine.fetchrow(
                _SQL["read_key"], self._tenant, session_id, wanted[0], safe=True
            )
        return await self._engine.fetchrow(
            _SQL["read_keys"], self._tenant, session_id, wanted, safe=True
        )

    async def _write(
        self,
        session_id: str,
        values: dict[str, str],
        dropped: Iterable[str] | None,
        expected_version: int | None,
        ttl_seconds: float | None,
    ) -> None:
        """Merge the values, or replace the state where nothing is said about dropped keys."""
        expected = check_optional_count("expected_version", expected_version)
        window = None if ttl_seconds is None else check_seconds("ttl_seconds", ttl_seconds)
        args = (
            self._tenant,
            session_id,
            encode_json({escape(key): text for key, text in values.items()}),
            window,
            [escape(key) for key in dropped or ()],
            dropped is None,
        )
        # Not safe to repeat: in between, somebody else's write would be undone by ours.
        if expected is None:
            await self._engine.fetch(_SQL["write"], *args, safe=False)
        else:
            await self._engine.fetch(_SQL["write_at_version"], *args, expected, safe=False)
