"""Whether a session is known, on Postgres."""

from __future__ import annotations

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id
from holdfast.kernel.storage.wake import SessionWake, Wake, WakeStatus

_SQL = load("wake")


class PostgresWake(SessionWake):
    """``SessionWake`` of Postgres alone: what is committed is at hand, and nothing is ever lost.

    ::

        wakes = PostgresWake(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def wake(self, session_id: str) -> Wake:
        """New, until something was written to its log or to its state."""
        session = check_id("session_id", session_id)
        known = await self._engine.fetchval(_SQL["known"], self._tenant, session, safe=True)
        return Wake(WakeStatus.WARM if known else WakeStatus.NEW)
