"""Writes to working states while Redis is down, on Postgres."""

from __future__ import annotations

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.escape import escape, unescape
from holdfast.engines.postgres.queries import load
from holdfast.spi.hybrid.state_snapshots import FallbackWrite, FallbackWrites
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.states import StateWrite

_SQL = load("fallback_writes")


class PostgresFallbackWrites(FallbackWrites):
    """Stores writes to states while Redis is down; one row per session, which merges its writes.

    ::

        fallback_writes = PostgresFallbackWrites(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def write(self, tenant: str, write: StateWrite) -> int:
        """Store a write, merged with the session's earlier ones. Returns its stamp."""
        # Not idempotent: a retry would undo a write that another process made in between.
        stamp = await self._engine.fetchval(
            _SQL["write"],
            *(tenant, write.session, write.fresh or write.gone, write.gone),
            encode_json({escape(key): text for key, text in write.values.items()}),
            [escape(key) for key in write.dropped],
            write.ttl_seconds,
            safe=False,
        )
        return int(stamp)

    async def read(self, tenant: str, session: str) -> FallbackWrite | None:
        """Return the merged write of a session, or ``None``."""
        row = await self._engine.fetchrow(_SQL["read"], tenant, session, safe=True)
        if row is None:
            return None
        _, stamp, fresh, cleared, gone, state, dropped, ttl_seconds, written_at, now = row
        values = {unescape(key): text for key, text in decode_json(state).items()}
        keys = tuple(unescape(key) for key in dropped)
        write = StateWrite(session, values, keys, ttl_seconds, fresh, gone)
        return FallbackWrite(write, stamp, cleared, written_at, now)

    async def waiting(self, *, limit: int) -> list[tuple[str, str]]:
        """Return up to ``limit`` pairs of a tenant and a session that have fallback writes."""
        rows = await self._engine.fetch_across(_SQL["waiting"], limit, safe=True)
        return [(tenant, session) for tenant, session in rows]

    async def merged(self, tenant: str, fallback: FallbackWrite) -> None:
        """Delete a fallback write that was applied to the state in Redis."""
        await self._engine.fetch(
            _SQL["merged"], tenant, fallback.write.session, fallback.stamp, safe=True
        )
