"""Harnesses of the hybrid memory: a real Valkey that syncs always, and a real Postgres 18."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import redis.asyncio

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.contracts.wakes import Wakes
from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker
from holdfast.engines.hybrid.consolidation import Consolidator, Pace
from holdfast.engines.hybrid.episodes import HybridEpisodes
from holdfast.engines.hybrid.log import AckLevel, HybridLog
from holdfast.engines.hybrid.state_commits import StateCommits
from holdfast.engines.hybrid.state_eviction import evict_states
from holdfast.engines.hybrid.state_saving import merge_fallback_writes, save_states
from holdfast.engines.hybrid.states import HybridStates
from holdfast.engines.hybrid.transcripts import HybridTranscripts
from holdfast.engines.hybrid.wake import HybridWake
from holdfast.engines.postgres.durable_log import PostgresDurableLog
from holdfast.engines.postgres.durable_queue import PostgresDurableQueue
from holdfast.engines.postgres.durable_states import PostgresDurableStates
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.fallback_writes import PostgresFallbackWrites
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.engines.redis import scripts
from holdfast.engines.redis.clean_states import RedisCleanStates
from holdfast.engines.redis.dirty_states import RedisDirtyStates
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.hot_log import RedisHotLog
from holdfast.engines.redis.hot_queue import RedisHotQueue
from holdfast.engines.redis.short_term import RedisStates
from holdfast.spi.embedding import Embedder
from holdfast.values.ids import new_ref
from tests.engines.postgres import PostgresHarness
from tests.engines.redis import AGE, DUMP, MOVED_CLOCK
from tests.engines.server_folder import server_folder
from tests.engines.valkey_server import PRIMARIES, ValkeyCluster, ValkeyServer

EVICT = """
for _, key in ipairs(redis.call('KEYS', '*:ses:*')) do
  if redis.call('HEXISTS', key, 'cold') == 1 and redis.call('PTTL', key) >= 0 then
    redis.call('DEL', key, (string.gsub(key, ':ses:', ':win:', 1)))
  end
end
"""
"""Lets what may expire expire at once."""


@cache
def valkey() -> ValkeyServer:
    """One server for all tests of a run, started when it is first needed."""
    found = ValkeyServer(folder=server_folder("hf-valkey-"))
    found.start()
    return found


@cache
def cluster_with_replicas() -> ValkeyCluster:
    """One cluster for all tests of a run."""
    found = ValkeyCluster(replicas=1)
    found.start()
    return found


class HybridHarness(PostgresHarness):
    """Nothing is flushed unless a call needs it: reads merge both logs."""

    name = "hybrid"
    database = "holdfast_hybrid"
    level: ClassVar[AckLevel] = "fsync"
    unused_seconds: ClassVar[float] = 0.5
    """When a state is evicted, by the clocks that ``elapse`` moves: below a second, in which the
    server itself counts how long a key was not read."""
    contracts = frozenset({"episodes", "history", "short_term", "memory"})
    _shift_us = 0

    @classmethod
    def hot_url(cls) -> str:
        """How the engine connects to Valkey."""
        return valkey().url

    @classmethod
    def hot_servers(cls) -> list[ValkeyServer]:
        """All servers of it that hold data."""
        return [valkey()]

    async def _each(self, script: str, *args: Any) -> list[Any]:
        answers = []
        for one in self.hot_servers():
            async with redis.asyncio.Redis(port=one.port) as client:
                answers.append(await client.eval(script, 0, *args))
        return answers

    async def open(self) -> None:
        """A tenant of this test's own, on an empty Valkey."""
        for one in self.hot_servers():
            assert one.ask("FLUSHALL") == "+OK"
        self._shift_us = 0
        await super().open()
        await self._open_hot()

    async def _open_hot(self) -> None:
        self.redis = await Redis.open(self.hot_url())
        if self._shift_us:
            self._move_clock()
        self.writer = "" if self.level == "committed" else new_ref()
        self.queue = RedisHotQueue(self.redis)
        self.durable = PostgresDurableQueue(self.engine)
        self.logs: dict[str, HybridLog] = {}
        self.dirty = RedisDirtyStates(self.redis, evictable=True)
        self.clean = RedisCleanStates(self.redis)
        self.states = PostgresDurableStates(self.engine)
        self.commits = StateCommits(self.dirty, self.states)
        self.fallback_writes = PostgresFallbackWrites(self.engine)
        self.breaker = CircuitBreaker()
        self.kept: dict[str, HybridStates] = {}
        self.consolidator = Consolidator(
            self.queue,
            self.durable,
            advance_epoch=self._advance_epoch,
            states=self._save_states,
            evict=self.evict,
            fallback_writes=self._merge_fallback_writes,
            flushed=lambda tenant, turns: self.log(tenant).forget(turns),
            pace=Pace(rested_seconds=60, unused_seconds=self.unused_seconds),
        )

    async def _save_states(self, tenant: str, shard: int) -> int:
        saved = self.short_term(tenant).saved
        return await save_states(self.dirty, self.states, tenant, shard, saved=saved)

    async def evict(self, tenant: str, shard: int, sessions: Sequence[str]) -> int:
        """Evict those states that are saved and unused."""
        return await evict_states(
            *(self.clean, self.states, tenant, shard, sessions),
            unused_seconds=self.unused_seconds,
        )

    async def _merge_fallback_writes(self) -> int:
        return await merge_fallback_writes(self.fallback_writes, self.short_term)

    async def _advance_epoch(self, tenant: str, session: str, epoch: int) -> None:
        await self.log(tenant).advance_epoch(session, epoch)

    async def close(self) -> None:
        """Close both, as a process does that has nothing left to flush."""
        await self._close_hot()
        await super().close()

    async def _close_hot(self) -> None:
        logs = [await log.is_settled() for log in self.logs.values()]
        states = [await kept.is_settled() for kept in self.kept.values()]
        if self.writer and all([*logs, *states]):
            await self.durable.release(self.writer)
        await self.redis.aclose()

    def die(self) -> None:
        """Go on as another process on the same connections: it remembers nothing."""
        self.logs.clear()
        self.kept.clear()
        self.writer = "" if self.level == "committed" else new_ref()

    async def reopen(self) -> None:
        """New connections to both."""
        await self._close_hot()
        await super().reopen()
        await self._open_hot()

    async def elapse(self, seconds: float) -> None:
        """Move both clocks."""
        await super().elapse(seconds)
        self._shift_us += round(seconds * 1_000_000)
        self._move_clock()
        await self._each(AGE, round(seconds * 1000))

    def _move_clock(self) -> None:
        clock = MOVED_CLOCK.format(shift=self._shift_us)
        self.redis.scripts = scripts.load(**self.redis.replaced, clock=clock)

    def log(self, tenant: str) -> HybridLog:
        """The log of a tenant, one for all its stores."""
        if tenant not in self.logs:
            self.logs[tenant] = HybridLog(
                RedisHotLog(self.redis, tenant=tenant, writer=self.writer),
                PostgresDurableLog(self.engine, tenant=tenant),
                self.consolidator,
                tenant=tenant,
                level=self.level,
                breaker=self.breaker,
            )
        return self.logs[tenant]

    def short_term(self, tenant: str) -> HybridStates:
        """The states of a tenant, one for all its stores."""
        if tenant not in self.kept:
            hot = RedisStates(
                self.redis, tenant=tenant, snapshots=True, writer=self.writer, evictable=True
            )
            self.kept[tenant] = HybridStates(
                hot,
                self.states,
                self.fallback_writes,
                self.commits,
                tenant=tenant,
                breaker=self.breaker,
                metrics=self.consolidator.metrics,
                committed=self.level == "committed",
            )
        return self.kept[tenant]

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store over both."""
        full = self._prefix + tenant
        return self._composed(contract, full, **options)

    def wakes(self, *, tenant: str = "default") -> Any:
        """How sessions are found."""
        full = self._prefix + tenant
        return Wakes(HybridWake(self.log(full), self.short_term(full)))

    def _composed(self, contract: str, tenant: str, **options: Any) -> Any:
        if contract == "short_term":
            kept = options.get("kept_versions", 0)
            self.states._kept_versions = kept
            return States(self.short_term(tenant), kept_versions=kept)
        if contract not in {"history", "episodes"}:
            return self.stores[contract](self.engine, tenant=tenant, **options)
        if contract == "history":
            durable = PostgresTranscripts(self.engine, tenant=tenant)
            return History(HybridTranscripts(self.log(tenant), durable))
        embedder: Embedder | None = options.get("embedder")
        episodes = PostgresEpisodes(self.engine, tenant=tenant, embedder=embedder)
        return EpisodicMemory(HybridEpisodes(self.log(tenant), episodes))

    async def raw(self, contract: str) -> list[str | bytes]:
        """What both hold."""
        answers = await self._each(DUMP)
        pairs = sorted(pair for flat in answers for pair in zip(flat[::2], flat[1::2], strict=True))
        return [*await super().raw(contract), *(part for pair in pairs for part in pair)]


class _Before:
    """A store before each call of which something happens."""

    def __init__(self, store: Any, before: Callable[[], Any]) -> None:
        self._store = store
        self._before = before

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "use_limits":
            return method
        if name in ("for_owner", "any_owner"):
            return lambda *args: _Before(method(*args), self._before)

        async def call(*args: Any, **named: Any) -> Any:
            await self._before()
            return await method(*args, **named)

        return call


class FlushedHybridHarness(HybridHarness):
    """Everything is flushed before each call."""

    name = "hybrid-flushed"
    database = "holdfast_flushed"

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store that finds everything flushed."""
        return _Before(super().store(contract, tenant=tenant, **options), self._before)

    def wakes(self, *, tenant: str = "default") -> Any:
        """How sessions are found, with everything flushed."""
        return _Before(super().wakes(tenant=tenant), self._before)

    async def raw(self, contract: str) -> list[str | bytes]:
        """What both hold, after what happens before each call."""
        await self._before()
        return await super().raw(contract)

    async def _before(self) -> None:
        assert await self.consolidator.drain(limit_seconds=30)


class ColdHybridHarness(FlushedHybridHarness):
    """Every session is cold, its window gone, and its state evicted, before each call."""

    name = "hybrid-cold"
    database = "holdfast_cold"
    # A cold session wakes as restored, and what is not hot has no memory to be warm in.
    contracts = frozenset({"episodes", "history", "short_term"})

    async def _before(self) -> None:
        await super()._before()
        work = await self.queue.work(rested_seconds=0.000001, unused_seconds=0.000001)
        for tenant, session in work.idle:
            await self.consolidator.unload(tenant, session)
        for where in work.clean:
            await self.evict(*where)
        await self._each(EVICT)


class CommittedHybridHarness(HybridHarness):
    """Every append waits for the commit."""

    name = "hybrid-committed"
    database = "holdfast_committed"
    level = "committed"


class HybridClusterHarness(HybridHarness):
    """Three primaries that share the slots, each with a replica."""

    name = "hybrid-cluster"
    database = "holdfast_cluster"
    level = "committed"

    @classmethod
    def hot_url(cls) -> str:
        """Any node."""
        return cluster_with_replicas().url

    @classmethod
    def hot_servers(cls) -> list[ValkeyServer]:
        """The primaries."""
        return cluster_with_replicas().servers[:PRIMARIES]
