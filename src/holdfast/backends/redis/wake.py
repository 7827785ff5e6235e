"""Whether a session is known, in Redis alone."""

from __future__ import annotations

from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import SessionKeys
from holdfast.backends.redis.short_term import RedisStates
from holdfast.kernel.core.checks import check_id
from holdfast.kernel.storage.wake import SessionWake, Wake, WakeStatus


class RedisWake(SessionWake):
    """``SessionWake`` of Redis alone: what has expired was never there.

    ::

        wakes = RedisWake(engine, tenant="acme")
    """

    def __init__(self, engine: Redis, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        self._states = RedisStates(engine, tenant=tenant)

    async def wake(self, session_id: str) -> Wake:
        """New, until something was written to its log or state; and again when all has expired."""
        session = check_id("session_id", session_id)
        index = SessionKeys.of(self._tenant, session, self._engine.shards).index
        numbered = await self._engine.command(index, "hexists", index, "s", safe=True)
        known = numbered or (await self._states.read(session, ())).version > 0
        return Wake(WakeStatus.WARM if known else WakeStatus.NEW)
