"""The hybrid memory: Redis for the hot path, Postgres as the durable store."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.contracts.wakes import Wakes
from holdfast.engines.hybrid.backpressure import Backpressure
from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker, HotStoreDownError
from holdfast.engines.hybrid.consolidation import Consolidator, Pace
from holdfast.engines.hybrid.episodes import HybridEpisodes
from holdfast.engines.hybrid.log import AckLevel, HybridLog
from holdfast.engines.hybrid.metrics import headroom
from holdfast.engines.hybrid.state_commits import StateCommits
from holdfast.engines.hybrid.state_eviction import evict_states
from holdfast.engines.hybrid.state_saving import merge_fallback_writes, save_states
from holdfast.engines.hybrid.states import HybridStates
from holdfast.engines.hybrid.transcripts import HybridTranscripts
from holdfast.engines.hybrid.wake import HybridWake
from holdfast.engines.redis.clean_states import RedisCleanStates
from holdfast.engines.redis.dirty_states import RedisDirtyStates
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.hot_log import RedisHotLog
from holdfast.engines.redis.hot_queue import RedisHotQueue
from holdfast.engines.redis.short_term import RedisStates
from holdfast.spi.hybrid.hot_log import Marks
from holdfast.values.errors import ConfigError, HoldfastError, UnavailableError
from holdfast.values.ids import new_ref
from holdfast.wiring.connections import Connections
from holdfast.wiring.health import Condition, EngineHealth
from holdfast.wiring.hybrid_sides import DurableSide, HybridSide
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.settings import Settings
from holdfast.wiring.stores import Stores

_log = logging.getLogger("holdfast.hybrid")

SERVES = ("history", "episodes", "short_term")
"""The attributes of a ``State`` that the hybrid serves."""

BEHIND_AT_OPEN = 10_000
"""Maximum number of sessions, in which Redis is behind Postgres, that opening a state reads."""

STUCK_SECONDS = 60.0
"""Health is degraded if the oldest event in Redis has waited for Postgres longer than this."""

DRAIN_SECONDS = 10.0
"""How long closing waits until Postgres has the events in Redis; the others are safe in Redis."""

_MEANING: dict[AckLevel, str] = {
    "hot": "hot: Redis has it when a write returns",
    "fsync": "fsync: on the disk of Redis when a write returns, in Postgres soon after",
    "committed": "committed: in Postgres when a write returns",
}


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectedHybrid(ConnectedEngine):
    """Redis and Postgres as one engine; degraded if the consolidators fall behind."""

    hot: RedisHotQueue | None = None
    consolidator: Consolidator | None = None
    """The consolidator of this process, if it has one."""

    async def probe(self) -> EngineHealth:
        """Return how far the consolidators are behind."""
        start = time.perf_counter()
        hot = cast("RedisHotQueue", self.hot)
        try:
            stats = await hot.stats()
        except HoldfastError as error:
            return self._health("down", time.perf_counter() - start, str(error))
        left = headroom(stats, ttl_seconds=hot.window_seconds)
        detail = f"{stats.pending} events wait, the oldest for {stats.oldest_seconds:.1f} s"
        if stats.quarantined:
            detail += f"; {stats.quarantined} damaged values were moved to quarantine keys"
        stuck = {} if self.consolidator is None else self.consolidator.stuck
        for (tenant, shard), why in stuck.items():
            detail += f"; shard {shard} of {tenant} is stuck: {why}"
        waits = stats.pending and stats.oldest_seconds > STUCK_SECONDS
        status: Condition = "ok" if left > 0.5 and not stuck and not waits else "degraded"
        return self._health(status, time.perf_counter() - start, detail)


class _Tenants:
    """The hybrid stores of each tenant, over one consolidator."""

    def __init__(
        self, engine: Redis, durable: DurableSide, level: AckLevel, settings: Settings
    ) -> None:
        self._engine = engine
        self._durable = durable
        self._level = level
        self._writer = "" if level == "committed" else new_ref()
        self._marks = Marks(settings.soft_mark, settings.hard_mark)
        self._state_ttl_seconds = settings.state_ttl_seconds
        self._state_versions = settings.state_versions
        self._unused_seconds = settings.hot_state_seconds
        self._evictable = self._unused_seconds > 0
        self._dirty = RedisDirtyStates(engine, evictable=self._evictable)
        self._clean = RedisCleanStates(engine)
        self._commits = StateCommits(self._dirty, durable.states)
        self._breaker = CircuitBreaker(broken_at=lambda: engine.broken_at)
        self._logs: dict[str, HybridLog] = {}
        self._behind: dict[str, dict[str, int]] = {}
        self._states: dict[str, HybridStates] = {}
        self.queue = RedisHotQueue(engine)
        self._backpressure = Backpressure(self.queue)
        self.consolidator = Consolidator(
            self.queue,
            durable.queue,
            advance_epoch=self._advance_epoch,
            states=self._save,
            evict=self._evict,
            fallback_writes=self._merge,
            flushed=lambda tenant, turns: self.log(tenant).forget(turns),
            settle=self._settle if self._writer else None,
            pace=Pace(unused_seconds=self._unused_seconds),
        )

    def log(self, tenant: str) -> HybridLog:
        if tenant not in self._logs:
            self._logs[tenant] = HybridLog(
                RedisHotLog(self._engine, tenant=tenant, marks=self._marks, writer=self._writer),
                self._durable.log(tenant),
                self.consolidator,
                tenant=tenant,
                level=self._level,
                backpressure=self._backpressure,
                breaker=self._breaker,
                behind=self._behind.pop(tenant, None),
            )
        return self._logs[tenant]

    async def look(self) -> None:
        """Read the sessions in which Redis is behind Postgres: their writer may have died."""
        for tenant, session, epoch in await self._durable.queue.behind(limit=BEHIND_AT_OPEN):
            self._behind.setdefault(tenant, {})[session] = epoch

    def states(self, tenant: str) -> HybridStates:
        if tenant not in self._states:
            self._states[tenant] = HybridStates(
                RedisStates(
                    self._engine,
                    tenant=tenant,
                    snapshots=True,
                    writer=self._writer,
                    evictable=self._evictable,
                ),
                self._durable.states,
                self._durable.fallback_writes,
                self._commits,
                tenant=tenant,
                breaker=self._breaker,
                metrics=self.consolidator.metrics,
                committed=self._level == "committed",
            )
        return self._states[tenant]

    def change(self, tenant: str, stores: Stores) -> Stores:
        """Return the stores of the durable engine, with some replaced by hybrid ones."""
        states, log = self.states(tenant), self.log(tenant)
        return dataclasses.replace(
            stores,
            episodes=EpisodicMemory(HybridEpisodes(log, self._durable.episodes(tenant))),
            history=History(HybridTranscripts(log, self._durable.transcripts(tenant))),
            short_term=States(
                states,
                ttl_seconds=self._state_ttl_seconds,
                kept_versions=self._state_versions,
            ),
            wakes=Wakes(HybridWake(log, states)),
        )

    async def _advance_epoch(self, tenant: str, session: str, epoch: int) -> None:
        try:
            await self.log(tenant).advance_epoch(session, epoch)
        except HotStoreDownError as error:
            raise UnavailableError("redis", str(error)) from error

    async def _settle(self) -> None:
        """Confirm that sessions in which Redis may have lost events lack none of this process."""
        for tenant, session in await self._durable.queue.unsettled(self._writer):
            try:
                await self.log(tenant).settle(session)
            except HotStoreDownError as error:
                raise UnavailableError("redis", str(error)) from error

    async def release(self) -> None:
        """Unregister this process as a writer, if all its acknowledged writes are stored.

        Other processes then do not wait for it to confirm its writes.
        """
        if not self._writer:
            return
        logs = [await log.is_settled() for log in self._logs.values()]
        states = [await states.is_settled() for states in self._states.values()]
        if all([*logs, *states]):
            await self._durable.queue.release(self._writer)

    async def _save(self, tenant: str, shard: int) -> int:
        saved = self.states(tenant).saved
        return await save_states(self._dirty, self._durable.states, tenant, shard, saved=saved)

    async def _evict(self, tenant: str, shard: int, sessions: Sequence[str]) -> int:
        return await evict_states(
            *(self._clean, self._durable.states, tenant, shard, sessions),
            unused_seconds=self._unused_seconds,
        )

    async def _merge(self) -> int:
        return await merge_fallback_writes(self._durable.fallback_writes, self.states)


async def put_hybrid(found: Connections, request: OpenRequest, engine: Redis) -> None:
    """Make both engines together serve the session log and working state of an opened state."""
    durable = cast("DurableSide", found.durable)
    if durable.distributed:
        raise ConfigError(
            "REDIS_URL: the hybrid memory needs one Postgres, and this one is "
            f"{durable.distributed}: open it without Redis"
        )
    level = level_of(request.settings, engine)
    tenants = _Tenants(engine, durable, level, request.settings)
    await tenants.look()
    queue, consolidator = tenants.queue, tenants.consolidator
    side = HybridSide(queue, durable.queue, consolidator, queue.window_seconds)
    work = _Background(consolidator) if request.background else None
    found.hybrid = side

    async def close() -> None:
        if work is not None:
            await work.close()
        try:
            await tenants.release()
        except HoldfastError as error:
            # Other processes will report acknowledged writes of this process as uncertain.
            _log.warning("this process could not be released: %s", error)

    both = connected_hybrid(engine, queue, level, close)
    found.add(dataclasses.replace(both, consolidator=consolidator), tenants.change)
    found.archive = durable.archive
    found.unarchived -= frozenset(SERVES)


def connected_hybrid(
    engine: Redis, queue: RedisHotQueue, level: AckLevel, close: Callable[[], Awaitable[None]]
) -> ConnectedHybrid:
    """Return Redis and Postgres as one connected engine."""
    return ConnectedHybrid(
        *("hybrid", SERVES, _MEANING[level], engine.ping, close),
        version="Redis beside Postgres",
        hot=queue,
    )


def level_of(settings: Settings, engine: Redis) -> AckLevel:
    """Return the acknowledgement level in effect.

    Without ``HOLDFAST_ACK_LEVEL`` it is ``fsync`` if Redis proves it, else ``committed``, the
    strongest; behind Sentinel and on a cluster Redis proves nothing. Raises ``ConfigError`` if the
    setting is ``fsync`` and Redis does not prove it.

    ::

        level = level_of(settings, engine)
    """
    proved: str = engine.capabilities.level
    alone = engine.capabilities.mode == "standalone"
    if proved == "unproved" and settings.redis_level and alone:
        proved = settings.redis_level
    if not settings.ack_level:
        return "fsync" if proved == "fsync" else "committed"
    if settings.ack_level == "fsync" and proved != "fsync":
        change = "; ".join(engine.capabilities.warnings) or "set HOLDFAST_REDIS_LEVEL"
        if not alone:
            change = f"{engine.capabilities.mode}: a replica that is behind may be promoted"
        raise ConfigError(
            f"HOLDFAST_ACK_LEVEL is fsync, but Redis does not prove it: {change}; "
            "or set HOLDFAST_ACK_LEVEL=committed"
        )
    return cast("AckLevel", settings.ack_level)


class _Background:
    """A consolidator that runs in this process."""

    def __init__(self, consolidator: Consolidator) -> None:
        self._consolidator = consolidator
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(consolidator.run(self._stop))

    async def close(self) -> None:
        """Stop, after copying the events in Redis to Postgres for up to ``DRAIN_SECONDS``."""
        self._stop.set()
        await self._task
        try:
            await self._consolidator.drain(limit_seconds=DRAIN_SECONDS)
        except HoldfastError:
            # The events are safe in Redis, and the next process that opens it continues.
            return
