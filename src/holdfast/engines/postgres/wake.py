"""Returns whether a session is known, on Postgres."""

from __future__ import annotations

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.wake import SessionWake
from holdfast.values.identity import AgentId
from holdfast.values.wakes import Gap, Wake, WakeStatus

_SQL = load("wake")
_LOG = load("durable_log")


class PostgresWake(SessionWake):
    """The status of sessions on Postgres alone: committed data needs no restore.

    Postgres loses no events. But if a session lost events earlier, when Redis was used as well, the
    gaps are reported.

    ::

        wakes = PostgresWake(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def wake_all(self, agent_id: AgentId) -> Wake | None:
        """Return the gaps of the sessions that an agent started; ``None`` if there are none."""
        rows = await self._engine.fetch(_LOG["agent_gaps"], self._tenant, str(agent_id), safe=True)
        gaps = tuple(Gap(*row) for row in rows)
        return Wake(WakeStatus.GAP, gaps=gaps) if gaps else None

    async def wake(self, session_id: str) -> Wake:
        """Return ``NEW`` until the log or state is written, then ``WARM``; ``GAP`` after a loss."""
        rows = await self._engine.fetch(_SQL["known"], self._tenant, session_id, safe=True)
        if gaps := tuple(Gap(*row[1:]) for row in rows if row[1] is not None):
            return Wake(WakeStatus.GAP, gaps=gaps)
        return Wake(WakeStatus.WARM if rows[0][0] else WakeStatus.NEW)
