"""The consolidator: moves events from the hot log to the durable log and loses none.

Any number of processes may run one, and each may die on any line. The next consolidator claims
again the turns that were claimed and not acknowledged. It recognizes an event that is already
stored by its id.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engines.hybrid.commits import Commits
from holdfast.engines.hybrid.metrics import HybridMetrics
from holdfast.spi.hybrid.durable_log import DurableQueue, Outcome, Turn
from holdfast.spi.hybrid.hot_entry import PositionedEntry, check_entry, unpack
from holdfast.spi.hybrid.hot_log import HotLog, HotQueue, HotTurn
from holdfast.values.errors import (
    CodecError,
    EngineError,
    HoldfastError,
    TimedOutError,
    UnavailableError,
)
from holdfast.values.failpoints import hit

_log = logging.getLogger("holdfast.consolidation")

STATES_AT_ONCE = 200
"""How many working states are saved in one step."""

FALLBACK_WRITES_SECONDS = 5.0
"""How often a consolidator looks for fallback writes of any process."""

BEHIND_SECONDS = 1.0
"""How often a consolidator looks for sessions in which the hot log is behind."""

BEHIND_AT_ONCE = 100
"""How many such sessions are advanced in one step."""

DEADLY_DELIVERIES = 10
"""A turn that was delivered more often than this becomes a dead letter.

It crashes the consolidators: its last deliveries contained this turn alone.
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """The batch size of a consolidator, its polling interval, and when a session counts as idle.

    >>> Pace().batch
    500
    """

    batch: int = 500
    interval_seconds: float = 0.2
    rested_seconds: float = 900
    unused_seconds: float = 0
    """Saved states that were unused for this long are evicted; 0 disables eviction."""
    longest_pause_seconds: float = 5.0


class Consolidator:
    """Flushes shards, unloads idle sessions, and advances the hot log where it is behind.

    ``advance_epoch`` advances a session of a tenant in the hot log to an epoch. ``states`` flushes
    the working states of a tenant in a shard. ``evict`` removes states from the hot store if they
    are saved and unused. ``fallback_writes`` applies the writes that the durable store
    took while the hot one was down; it is called every few seconds. ``flushed`` is called with the
    turns that were committed. ``settle`` settles sessions in which another process found a gap.
    ::

        consolidator = Consolidator(hot, durable, advance_epoch=advance_epoch)
        await consolidator.run_once()
    """

    def __init__(
        self,
        hot: HotQueue,
        durable: DurableQueue,
        *,
        advance_epoch: Callable[[str, str, int], Awaitable[None]],
        states: Callable[[str, int], Awaitable[int]] | None = None,
        evict: Callable[[str, int, Sequence[str]], Awaitable[int]] | None = None,
        fallback_writes: Callable[[], Awaitable[int]] | None = None,
        flushed: Callable[[str, Sequence[HotTurn]], None] | None = None,
        settle: Callable[[], Awaitable[None]] | None = None,
        pace: Pace | None = None,
        metrics: HybridMetrics | None = None,
    ) -> None:
        self._hot = hot
        self._durable = durable
        self._advance_epoch = advance_epoch
        self._states = states
        self._evict = evict
        self._fallback_writes = fallback_writes
        self._flushed = flushed
        self._settle = settle
        self._fallback_writes_at = 0.0
        self._behind_at = 0.0
        self._pace = pace or Pace()
        self._locks: dict[tuple[str, int], asyncio.Lock] = {}
        self._commits = Commits()
        self.stuck: dict[tuple[str, int], str] = {}
        """Shards whose last round failed because of their own data, with the error."""
        self.metrics = metrics or HybridMetrics()

    async def run(self, stop: asyncio.Event, *, tenants: Collection[str] | None = None) -> None:
        """Consolidate until ``stop`` is set. After a failure it retries with growing pauses.

        With ``tenants`` it skips the events of all other tenants. ::

            await consolidator.run(stop, tenants=["acme"])
        """
        pause = self._pace.interval_seconds
        while not stop.is_set():
            try:
                more = await self.run_once(tenants=tenants)
            except Exception as error:  # noqa: BLE001 - the top of a worker's loop: it goes on
                self.metrics.failures += 1
                pause = min(pause * 2, self._pace.longest_pause_seconds)
                strange = not isinstance(error, HoldfastError)
                _log.warning("consolidation waits %.1f s: %s", pause, error, exc_info=strange)
                await _wait(stop, pause * random.uniform(0.5, 1.0))  # noqa: S311 - only jitter
                continue
            pause = self._pace.interval_seconds
            if not more:
                await _wait(stop, pause)

    async def run_once(self, *, tenants: Collection[str] | None = None) -> bool:
        """Do all current work. Returns whether a batch was full, so that there may be more."""
        work = await self._hot.work(
            rested_seconds=self._pace.rested_seconds, unused_seconds=self._pace.unused_seconds
        )
        more = False
        for tenant, shard in work.flush:
            if tenants is not None and tenant not in tenants:
                continue
            more = await self._round(tenant, shard) or more
        await self._merge_fallback_writes()
        await self._advance_behind(tenants)
        for tenant, session in work.idle:
            if tenants is None or tenant in tenants:
                await self.unload(tenant, session)
        for tenant, shard, sessions in work.clean:
            if tenants is None or tenant in tenants:
                await self._evict_states(tenant, shard, sessions)
        return more

    async def _round(self, tenant: str, shard: int) -> bool:
        """Flush a batch of a shard and its states. An error there does not stop other shards."""
        try:
            done = await self.flush_shard(tenant, shard)
            if self._states is not None:
                await self._states(tenant, shard)
        except (UnavailableError, TimedOutError):
            raise  # a store is down, so the other shards would fail too
        except Exception as error:  # noqa: BLE001 - one shard of a worker's loop: the others go on
            self._note_stuck(tenant, shard, error)
            return False
        self.stuck.pop((tenant, shard), None)
        return done is not None and done >= self._pace.batch

    async def _evict_states(self, tenant: str, shard: int, sessions: Sequence[str]) -> None:
        """Evict states of a shard. An error there does not stop other shards."""
        if self._evict is None:
            return
        try:
            self.metrics.evicted += await self._evict(tenant, shard, sessions)
        except (UnavailableError, TimedOutError):
            raise
        except Exception as error:  # noqa: BLE001 - one shard of a worker's loop: the others go on
            self._note_stuck(tenant, shard, error)

    def _note_stuck(self, tenant: str, shard: int, error: Exception) -> None:
        self.metrics.failures += 1
        if (tenant, shard) not in self.stuck:
            _log.exception("shard %d of %s is stuck and tried again", shard, tenant)
        self.stuck[tenant, shard] = f"{type(error).__name__}: {error}"

    async def _merge_fallback_writes(self, *, now: bool = False) -> None:
        if self._fallback_writes is not None and (
            now or time.monotonic() >= self._fallback_writes_at
        ):
            self._fallback_writes_at = time.monotonic() + FALLBACK_WRITES_SECONDS
            while await self._fallback_writes() >= STATES_AT_ONCE:
                pass

    async def _advance_behind(self, tenants: Collection[str] | None) -> None:
        """Advance the hot log where a process wrote to the durable log only, and then died."""
        if time.monotonic() >= self._behind_at:
            self._behind_at = time.monotonic() + BEHIND_SECONDS
            for tenant, session, epoch in await self._durable.behind(limit=BEHIND_AT_ONCE):
                if tenants is None or tenant in tenants:
                    await self._advance_epoch(tenant, session, epoch)
            if self._settle is not None:
                await self._settle()

    async def drain(self, *, limit_seconds: float | None = None) -> bool:
        """Consolidate everything that is in the hot log now. Returns whether it finished in time.

        ::

            await consolidator.drain(limit_seconds=10)
        """
        try:
            async with asyncio.timeout(limit_seconds):
                await self._merge_fallback_writes(now=True)
                work = await self._hot.work(rested_seconds=self._pace.rested_seconds)
                for tenant, shard in work.flush:
                    await self.drain_shard(tenant, shard)
                return True
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            return False

    async def drain_shard(self, tenant: str, shard: int) -> None:
        """Consolidate everything that is in a shard now.

        ::

            await consolidator.drain_shard("acme", 7)
        """
        left = await self._hot.length(tenant, shard)
        while left > 0:
            done = await self.flush_shard(tenant, shard)
            if done == 0:
                break
            if done is None:
                await _moment()
                # Another process flushes this shard. What it has flushed need not be waited for.
                left = min(left, await self._hot.length(tenant, shard))
            else:
                left -= done
        if self._states is not None:
            while await self._states(tenant, shard) >= STATES_AT_ONCE:
                pass

    async def flush_shard(self, tenant: str, shard: int) -> int | None:
        """Make the oldest batch of a shard durable.

        Returns the number of turns, or ``None`` if another process is flushing the shard.

        ::

            flushed = await consolidator.flush_shard("acme", 7)
        """
        turns: list[HotTurn] = []
        try:
            async with self._durable.flushing(tenant, shard) as flush:
                if flush is None:
                    return None
                turns = await self._hot.claim(tenant, shard, limit=self._pace.batch)
                hit("consolidate.after_claim")
                flushed = await flush.store([_read(turn) for turn in turns])
        except (UnavailableError, asyncio.CancelledError):
            await self._give_back(tenant, shard, turns)
            raise
        self._commits.named(tenant, shard, turns, flushed.outcomes)
        if self._flushed is not None:
            self._flushed(tenant, turns)
        hit("consolidate.after_commit")
        if not turns:
            # The shard is empty: clear its work flag.
            await self._hot.acknowledge(tenant, shard, [])
            return 0
        self._report(tenant, turns, flushed.outcomes)
        await self._hot.acknowledge(tenant, shard, list(zip(turns, flushed.outcomes, strict=True)))
        hit("consolidate.after_acknowledge")
        for session, epoch in flushed.behind.items():
            await self._advance_epoch(tenant, session, epoch)
        return len(turns)

    async def _give_back(self, tenant: str, shard: int, turns: Sequence[HotTurn]) -> None:
        """Do not count this delivery: the failure was an outage or a cancelled call.

        The delivery count serves to find the turns that make consolidators fail or crash.
        """
        if turns:
            with suppress(EngineError):
                await self._hot.give_back(tenant, shard, turns)

    async def through(
        self, tenant: str, hot: HotLog, entries: Sequence[PositionedEntry]
    ) -> list[PositionedEntry]:
        """Flush until each entry was committed or has left the hot log.

        Returns the entries that no commit of this process has stored at their position. They may be
        lost: the caller must look them up in the durable log before it acknowledges them. ::

            unnamed = await consolidator.through("acme", hot, positioned)
        """
        shards: dict[int, list[PositionedEntry]] = {}
        for one in entries:
            shards.setdefault(hot.shard_of(one.entry.session), []).append(one)
        unnamed: list[PositionedEntry] = []
        for shard, part in shards.items():
            unnamed += await self._through(tenant, hot, shard, part)
        return unnamed

    async def _through(
        self, tenant: str, hot: HotLog, shard: int, entries: Sequence[PositionedEntry]
    ) -> list[PositionedEntry]:
        lock = self._locks.setdefault((tenant, shard), asyncio.Lock())
        with self._commits.waiting(tenant, shard, entries) as waits:
            # A writer that waited for the lock may find its entries committed by the previous
            # holder.
            async with lock:
                left = [wait for wait in waits if wait.outcome is None]
                while left:
                    done = await self.flush_shard(tenant, shard)
                    left = [wait for wait in left if wait.outcome is None]
                    if not left:
                        break
                    # Neither in the hot log nor in a commit of this process: either another process
                    # committed it, or it is lost. An empty stream does not show which.
                    gone = {id(one) for one in await hot.missing([wait.one for wait in left])}
                    left = [wait for wait in left if id(wait.one) not in gone]
                    if left and not done:
                        await _moment()
            return [wait.one for wait in waits if wait.outcome is not Outcome.STORED]

    async def unload(self, tenant: str, session: str, *, keep: bool = True) -> None:
        """Unload a session from the hot log, if all of it is flushed.

        Its window expires after a while; with ``keep=False`` it is deleted at once.

        ::

            await consolidator.unload("acme", "s1")
        """
        grant_version = await self._hot.unload(tenant, session)
        hit("unload.after_mark")
        if grant_version is not None:
            await self._durable.unload(tenant, session, grant_version=grant_version)
            hit("unload.after_durable")
            await self._hot.unloaded(tenant, session, grant_version=grant_version, keep=keep)
            self.metrics.unloaded += 1

    def _report(self, tenant: str, turns: Sequence[HotTurn], outcomes: Sequence[Outcome]) -> None:
        self.metrics.flushed += len(turns)
        for turn, outcome in zip(turns, outcomes, strict=True):
            if outcome is Outcome.DEAD:
                self.metrics.dead += 1
                _log.error(
                    "event %s of session %s of %s could not be stored: "
                    "see `holdfast dead-letters list`",
                    *(turn.event_id, turn.session, tenant),
                )


def _read(turn: HotTurn) -> Turn:
    entry, problem = None, ""
    if turn.deliveries > DEADLY_DELIVERIES:
        problem = f"handed out {turn.deliveries} times, and never stored"
    else:
        try:
            entry = check_entry(unpack(turn.session, turn.payload))
        except CodecError as error:
            problem = str(error)
    where = (turn.session, turn.event_id, turn.epoch, turn.seq)
    return Turn(*where, turn.payload, entry, problem, turn.awaited)


async def _moment() -> None:
    await asyncio.sleep(random.uniform(0.002, 0.01))  # noqa: S311 - only jitter


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
