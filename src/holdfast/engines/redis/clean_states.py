"""The states of all tenants that are saved in Postgres: unused ones are evicted from Redis."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import ShardKeys, encode
from holdfast.engines.redis.quarantine import Quarantine
from holdfast.engines.redis.short_term import REMOVED_SECONDS
from holdfast.engines.redis.timestamps import duration
from holdfast.spi.hybrid.state_snapshots import CleanStates, Eviction, SavedState

REGISTER_SECONDS = 60
"""How long a state is not evicted after a process registered to write to it."""


class RedisCleanStates(CleanStates):
    """The states that are saved in Postgres, and can be evicted from Redis once they are unused.

    A read counts as use. The server measures it (``OBJECT IDLETIME``), in whole seconds. ::

        clean = RedisCleanStates(engine)
    """

    def __init__(self, engine: Redis) -> None:
        self._engine = engine
        self._quarantine = engine.singleton(Quarantine)

    async def begin_eviction(
        self, tenant: str, shard: int, sessions: Sequence[str], *, unused_seconds: float
    ) -> Eviction:
        """Choose the given states that are saved and have been unused for ``unused_seconds``."""
        keys = ShardKeys.of(tenant, shard)
        names = [encode(session) for session in sessions]
        where = (keys.clean, keys.dirty, keys.removed)
        spans = (duration(unused_seconds), duration(REGISTER_SECONDS))
        given = (*spans, keys.tenant, f"{keys.prefix}st:", *names)
        # Safe to repeat: an eviction whose number was lost has no further steps.
        number, found = await self._quarantine.guard(
            lambda: self._engine.run("state_evicting", where, given, safe=True),
            (*where, *(f"{keys.prefix}st:{name}" for name in names)),
        )
        states: list[SavedState] = []
        doubtful: set[str] = set()
        for name, version, lineage, base, is_doubtful in found:
            session = unquote(name.decode())
            try:
                states.append(
                    SavedState(session, int(version), {}, lineage=int(lineage), base=int(base))
                )
            except ValueError:
                await self._quarantine.check([f"{keys.prefix}st:{name.decode()}"])
            if is_doubtful:
                doubtful.add(session)
        return Eviction(int(number), tuple(states), frozenset(doubtful))

    async def evict(
        self, tenant: str, shard: int, eviction: Eviction, sessions: Collection[str]
    ) -> int:
        """Delete chosen states that were not written since the eviction began. Returns how many."""
        keys = ShardKeys.of(tenant, shard)
        given: list[Any] = [eviction.number, duration(REMOVED_SECONDS), keys.tenant]
        given.append(f"{keys.prefix}st:")
        for one in eviction.states:
            given += (encode(one.session), one.version if one.session in sessions else "")
        # Safe to repeat: the versions are compared.
        evicted = await self._engine.run(
            "state_evict", (keys.clean, keys.dirty, keys.removed), given, safe=True
        )
        return int(evicted)
