"""Returns whether a session is known, in Redis alone."""

from __future__ import annotations

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import SessionKeys
from holdfast.engines.redis.short_term import RedisStates
from holdfast.spi.wake import SessionWake
from holdfast.values.wakes import Wake, WakeStatus


class RedisWake(SessionWake):
    """The status of sessions in Redis alone: an expired session counts as new.

    ::

        wakes = RedisWake(engine, tenant="acme")
    """

    def __init__(self, engine: Redis, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        self._states = RedisStates(engine, tenant=tenant)

    async def wake(self, session_id: str) -> Wake:
        """Return ``NEW`` if Redis has neither a log nor a state of the session, else ``WARM``."""
        index = SessionKeys.of(self._tenant, session_id, self._engine.shards).index
        numbered = await self._engine.command(index, "hexists", index, "s", safe=True)
        known = numbered or (await self._states.read(session_id, ())).version > 0
        return Wake(WakeStatus.WARM if known else WakeStatus.NEW)
