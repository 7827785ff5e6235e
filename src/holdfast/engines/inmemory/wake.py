"""Returns whether a session is known, in memory."""

from __future__ import annotations

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.session_log import SessionLog
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.spi.wake import SessionWake
from holdfast.values.wakes import Wake, WakeStatus


class InMemoryWake(SessionWake):
    """The status of sessions in memory: nothing is lost or restored while the process runs.

    >>> wakes = InMemoryWake(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._log = engine.table(tenant, SessionLog)
        self._states = InMemoryStates(engine, tenant=tenant)

    async def wake(self, session_id: str) -> Wake:
        """Return ``NEW`` until the session's log or state is written, then ``WARM``."""
        session = self._log.sessions.get(session_id)
        written = session is not None and session.seq > 0
        known = written or (await self._states.read(session_id, ())).version > 0
        return Wake(WakeStatus.WARM if known else WakeStatus.NEW)
