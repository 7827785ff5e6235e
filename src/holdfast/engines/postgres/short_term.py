"""Working states, on Postgres."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.escape import escape, unescape
from holdfast.engines.postgres.queries import load
from holdfast.spi.states import StateStorage
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.states import StateSnapshot, StateVersion, StateWrite

_SQL = load("short_term")


class PostgresStates(StateStorage):
    """Stores working states, one row per session: a JSON object whose values are JSON texts.

    ::

        states = PostgresStates(engine, tenant="acme")
    """

    keeps_versions = True

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state; with ``keys``, only these keys of it."""
        wanted = None if keys is None else [escape(key) for key in keys]
        row = await self._row(session, wanted)
        if row is None:
            return StateSnapshot({})
        if wanted is None:
            return snapshot(row)
        stored = row["state"]
        values = [stored] if len(wanted) == 1 else stored
        texts = {key: text for key, text in zip(wanted, values, strict=True) if text}
        return StateSnapshot(_decoded(texts), row["version"], row["expires_at"])

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of sessions."""
        rows = await self._engine.fetch(
            _SQL["read_many"], self._tenant, list(dict.fromkeys(sessions)), safe=True
        )
        found = {row["session_id"]: row for row in rows}
        return [
            snapshot(found[session]) if session in found else StateSnapshot({})
            for session in sessions
        ]

    async def _row(self, session: str, wanted: list[str] | None) -> Any:
        where = (self._tenant, session)
        if wanted is None:
            return await self._engine.fetchrow(_SQL["read"], *where, safe=True)
        if len(wanted) == 1:
            return await self._engine.fetchrow(_SQL["read_key"], *where, wanted[0], safe=True)
        return await self._engine.fetchrow(_SQL["read_keys"], *where, wanted, safe=True)

    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace or patch a state. Returns its new version."""
        args = (
            self._tenant,
            write.session,
            encode_json({escape(key): text for key, text in write.values.items()}),
            write.ttl_seconds,
            [escape(key) for key in write.dropped],
            write.fresh,
            write.kept_versions,
        )
        # Not idempotent: a retry would undo a write that another process made in between.
        # Citus does not plan the one statement; the function takes no version for any.
        if expected is None and not self._engine.capabilities.distributed:
            return int(await self._engine.fetchval(_SQL["write"], *args, safe=False))
        sql = _SQL["write_at_version"]
        return int(await self._engine.fetchval(sql, *args, expected, safe=False))

    async def clear(self, session: str) -> None:
        """Delete a state."""
        await self._engine.fetch(_SQL["clear"], self._tenant, session, safe=False)

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        """Return the kept versions of a state below ``before``, the newest first."""
        where = (self._tenant, session, before, limit)
        rows = await self._engine.fetch(_SQL["versions"], *where, safe=True)
        return [StateVersion(version, written_at) for version, written_at in rows]

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        """Return this version of a state; ``None`` if it is not kept."""
        where = (self._tenant, session, version)
        row = await self._engine.fetchrow(_SQL["read_version"], *where, safe=True)
        return None if row is None else snapshot(row)


def snapshot(row: Any) -> StateSnapshot:
    """Return the state in a row of ``states``.

    ::

        found = snapshot(await engine.fetchrow(sql, tenant, session))
    """
    return StateSnapshot(_decoded(decode_json(row["state"])), row["version"], row["expires_at"])


def _decoded(texts: dict[str, str]) -> dict[str, Any]:
    return {unescape(key): decode_json(text) for key, text in texts.items()}
