"""Working states as of their last save, in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.hybrid.state_snapshots import DurableStates, Eviction, SavedState
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.states import StateVersion

_SQL = load("durable_log")


class PostgresDurableStates(DurableStates):
    """Stores the saved states, one row per session, and up to ``kept_versions`` older versions.

    ::

        states = PostgresDurableStates(engine)
    """

    def __init__(self, engine: Postgres, *, kept_versions: int = 0) -> None:
        self._engine = engine
        self._kept_versions = kept_versions

    async def save(self, tenant: str, states: Sequence[SavedState]) -> None:
        """Save states. A state is skipped if a newer version of it is saved."""
        await self._engine.fetch(
            _SQL["save_states"],
            tenant,
            [one.session for one in states],
            [one.version for one in states],
            [encode_json(one.values) for one in states],
            [one.ttl_seconds for one in states],
            [one.expires_at for one in states],
            [one.gone for one in states],
            [one.lineage for one in states],
            [one.base for one in states],
            [one.stamp for one in states],
            self._kept_versions,
            safe=True,
        )

    async def versions(self, tenant: str, sessions: Sequence[str]) -> dict[str, SavedState]:
        """Return the saved states of sessions, without their values."""
        rows = await self._engine.fetch(_SQL["state_versions"], tenant, list(sessions), safe=True)
        return {
            session: SavedState(session, version, {}, gone=gone, lineage=lineage)
            for session, version, gone, lineage in rows
        }

    async def load(self, tenant: str, session: str) -> SavedState | None:
        """Return the saved state of a session, or ``None``."""
        row = await self._engine.fetchrow(_SQL["load_state"], tenant, session, safe=True)
        if row is None:
            return None
        version, state, ttl_seconds, expires_at, gone, lineage, stamp, saved_at, *more = row
        writers, eviction = more
        return SavedState(
            *(session, version, decode_json(state), ttl_seconds, expires_at),
            gone=gone,
            lineage=lineage,
            stamp=stamp,
            saved_at=saved_at,
            writers=frozenset(writers),
            eviction=eviction,
        )

    async def earlier_versions(
        self, tenant: str, session: str, before: int, limit: int
    ) -> list[StateVersion]:
        """Return the kept versions of a state below ``before``, the newest first."""
        where = (tenant, session, before, limit)
        rows = await self._engine.fetch(_SQL["earlier_versions"], *where, safe=True)
        return [StateVersion(version, written_at) for version, written_at in rows]

    async def load_version(self, tenant: str, session: str, version: int) -> SavedState | None:
        """Return this version of a state; ``None`` if it is not kept."""
        where = (tenant, session, version)
        row = await self._engine.fetchrow(_SQL["earlier_state"], *where, safe=True)
        if row is None:
            return None
        return SavedState(session, version, decode_json(row[0]), expires_at=row[1])

    async def register(self, tenant: str, session: str, writer: str, *, eviction: int) -> None:
        """Record that a process is going to write to a state."""
        await self._engine.fetch(
            _SQL["register_state"], tenant, session, writer, eviction, safe=True
        )

    async def evict(self, tenant: str, eviction: Eviction) -> set[str]:
        """Unregister the writers of the chosen states that are saved. Returns the sessions."""
        states = eviction.states
        # Safe to repeat: a state found by the first try is not found again, and stays for now.
        rows = await self._engine.fetch(
            _SQL["evict_states"],
            tenant,
            eviction.number,
            [one.session for one in states],
            [one.version for one in states],
            [one.lineage for one in states],
            [one.base for one in states],
            [one.session in eviction.doubtful for one in states],
            safe=True,
        )
        return {session for (session,) in rows}

    async def clear(self, tenant: str, session: str, *, version: int) -> None:
        """Record that the state with this version was cleared."""
        # Safe to repeat: it writes the same again.
        await self._engine.fetch(_SQL["clear_state"], tenant, session, version, safe=True)
