"""Writes to working states that Redis could not take, on Postgres."""

from __future__ import annotations

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.escape import escape, unescape
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.storage.short_term import StateWrite
from holdfast.kernel.storage.state_snapshots import AsideState, AsideStates

_SQL = load("state_asides")


class PostgresAsideStates(AsideStates):
    """``AsideStates`` in one row for each session, which all its writes are put together in.

    ::

        asides = PostgresAsideStates(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def write(self, tenant: str, write: StateWrite) -> None:
        """Keep a write."""
        # Not safe to repeat: in between, somebody else's write would be undone by ours.
        await self._engine.fetch(
            _SQL["write"],
            *(tenant, write.session, write.fresh or write.gone, write.gone),
            encode_json({escape(key): text for key, text in write.values.items()}),
            [escape(key) for key in write.dropped],
            write.ttl_seconds,
            safe=False,
        )

    async def read(self, tenant: str, session: str) -> AsideState | None:
        """What waits of a session."""
        row = await self._engine.fetchrow(_SQL["read"], tenant, session, safe=True)
        if row is None:
            return None
        _, stamp, fresh, cleared, gone, state, dropped, ttl_seconds, written_at, now = row
        values = {unescape(key): text for key, text in decode_json(state).items()}
        keys = tuple(unescape(key) for key in dropped)
        write = StateWrite(session, values, keys, ttl_seconds, fresh, gone)
        return AsideState(write, stamp, cleared, written_at, now)

    async def waiting(self, *, limit: int) -> list[tuple[str, str]]:
        """Some tenants and sessions of which something waits."""
        rows = await self._engine.fetch(_SQL["waiting"], limit, safe=True)
        return [(tenant, session) for tenant, session in rows]

    async def merged(self, tenant: str, aside: AsideState) -> None:
        """Forget what the hot store has."""
        await self._engine.fetch(
            _SQL["merged"], tenant, aside.write.session, aside.stamp, safe=True
        )
