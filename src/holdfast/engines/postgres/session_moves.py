"""Renames sessions: those that owners shared in an old version, or that an operator assigns."""

from __future__ import annotations

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.session_moves import Moved, SessionMove, SessionMoves
from holdfast.values.owners import UNASSIGNED

_SQL = load("session_moves")


class PostgresSessionMoves(SessionMoves):
    """The sessions that are to be renamed, in all tenants.

    ::

        moves = PostgresSessionMoves(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def any(self) -> bool:
        """Return whether any session is to be renamed."""
        [row] = await self._engine.fetch_across(_SQL["any"], safe=True)
        return bool(row[0])

    async def skip_empty(self) -> None:
        """Delete the planned moves of sessions that have no data."""
        await self._engine.fetch_across(_SQL["skip_empty"], safe=True)

    async def pending(self, *, after: SessionMove | None = None, limit: int) -> list[SessionMove]:
        """Return a page of the sessions to move, ordered by tenant and session."""
        last = ("", "") if after is None else (after.tenant, after.session)
        rows = await self._engine.fetch_across(_SQL["pending"], *last, limit, safe=True)
        return [SessionMove(*row) for row in rows]

    async def move(self, tenant: str, old: tuple[str, str], new: tuple[str, str]) -> Moved:
        """Rename a session, and replace the prefix of its agents' names."""
        moved: Moved = await self._engine.fetchval(_SQL["move"], tenant, *old, *new, safe=True)
        return moved

    async def done(self, move: SessionMove) -> None:
        """Delete the record of a completed move."""
        await self._engine.fetch(_SQL["done"], move.tenant, move.session, safe=True)

    async def unassigned(self, *, limit: int) -> list[tuple[str, str]]:
        """Return the tenants and contexts whose old sessions have no owner yet."""
        rows = await self._engine.fetch_across(_SQL["unassigned"], limit, safe=True)
        return [(row[0], row[1].removeprefix(UNASSIGNED)) for row in rows]
