"""Level ``committed``: acknowledge an event only once the durable log has committed it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker
from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.engines.hybrid.grants import Grants
from holdfast.engines.hybrid.unflushed import LOOK_EVERY, Unflushed
from holdfast.spi.hybrid.durable_log import DurableLog, Outcome
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.hybrid.hot_log import Appended, HotLog
from holdfast.spi.log_entry import LogEntry, another_body
from holdfast.values.errors import EngineError, TimedOutError, UnavailableError
from holdfast.values.failpoints import hit

_log = logging.getLogger("holdfast.hybrid")

COMMIT_SECONDS = 30.0
"""How long a write at level committed waits for its commit."""


class WriteBack:
    """Ensures that entries of one tenant's hot log reach the durable log.

    ::

        stored = await back.committed(positioned(batch, appended))
    """

    def __init__(
        self,
        hot: HotLog,
        durable: DurableLog,
        consolidator: Consolidator,
        grants: Grants,
        *,
        tenant: str,
        breaker: CircuitBreaker,
    ) -> None:
        self._hot = hot
        self._durable = durable
        self._consolidator = consolidator
        self._metrics = consolidator.metrics
        self._grants = grants
        self._tenant = tenant
        self._breaker = breaker
        self.unflushed = Unflushed()

    async def committed(
        self,
        entries: Sequence[PositionedEntry],
        *,
        limit_seconds: float = COMMIT_SECONDS,
        awaited: bool = False,
    ) -> list[PositionedEntry]:
        """Wait until the durable log has committed all entries. Returns them as they are stored.

        Entries that the hot log has lost meanwhile are written to the durable log from ``entries``.
        ``awaited`` means that the entries are not acknowledged yet. Then entries of an epoch that
        is over are written too if a clear covers their positions: that clear did not know them.
        Raises ``TimedOutError`` if it takes too long: a retry with the same ids finds out whether
        they were stored.
        """
        stored = {one.entry.key: one for one in entries}
        try:
            async with asyncio.timeout(limit_seconds):
                unnamed = await self._flushed(entries)
                if unnamed:
                    found = await self._read_back(unnamed, awaited)
                    stored |= {one.entry.key: one for one in found}
        except TimeoutError as error:
            if isinstance(error, TimedOutError):
                raise
            raise TimedOutError("hybrid", "the commit timed out") from None
        except UnavailableError as error:
            raise TimedOutError("hybrid", f"not committed yet: {error}") from error
        return list(stored.values())

    async def _flushed(self, entries: Sequence[PositionedEntry]) -> list[PositionedEntry]:
        """Flush entries. Returns those that no commit of this process has stored."""
        try:
            return await self._consolidator.through(self._tenant, self._hot, entries)
        except (UnavailableError, TimedOutError) as error:
            # If the durable log answers, the caller looks the entries up there and writes those
            # missing.
            _log.warning("%d events are not flushed: %s", len(entries), error)
            return list(entries)

    async def _read_back(
        self, entries: Sequence[PositionedEntry], awaited: bool
    ) -> list[PositionedEntry]:
        """Return entries as the durable log has them. Those that it lacks are written to it."""
        stored: list[PositionedEntry] = []
        lost: list[LogEntry] = []
        for one, found in zip(entries, await self._durable.find(entries), strict=True):
            if found.other:
                raise another_body(one.entry.session, one.entry.id)
            if found.outcome is Outcome.DEAD:
                raise EngineError(
                    "hybrid",
                    f"event {one.entry.id!r} of session {one.entry.session!r} could not be stored: "
                    "see `holdfast dead-letters list`",
                )
            cleared_before = awaited and found.over and found.outcome is Outcome.COVERED
            if found.outcome is None or cleared_before:
                lost.append(one.entry)
            elif found.stored is not None:
                stored.append(found.stored)
                if found.stored.epoch > one.epoch:
                    self._grants.mark_behind([found.stored])
        return stored + await self._rewrite(lost)

    async def _rewrite(self, lost: Sequence[LogEntry]) -> list[PositionedEntry]:
        """Write entries to the durable log that the hot log lost before they were flushed."""
        if not lost:
            return []
        stored = await self._durable.append(lost)
        hit("append.after_rewrite")
        self._grants.mark_behind(stored)
        self._metrics.rewritten += len(lost)
        _log.warning(
            "Redis lost %d events before they were flushed: written to the durable log", len(lost)
        )
        return stored

    async def recover(self, session: str) -> None:
        """Write those entries of this process to the durable log that the hot log has lost.

        Raises ``HotStoreDownError`` if the hot log does not answer: it is then unknown whether
        anything is lost. ::

            await back.recover("s1")
        """
        mine = self.unflushed.of(session)
        if not mine:
            return
        # In this order: an entry that left the hot log by being flushed is in the durable log.
        gone = await self._breaker.call(lambda: self._hot.missing(mine))
        lost = await self._absent(gone)
        await self._rewrite([one.entry for one in lost])
        self._forget(lost)

    async def drain(self, session: str) -> None:
        """Flush all unflushed entries in the shard of a session.

        ::

            await back.drain("s1")
        """
        await self._consolidator.drain_shard(self._tenant, self._hot.shard_of(session))

    async def unseen(self, entries: Sequence[PositionedEntry]) -> list[PositionedEntry]:
        """Return the entries that the durable log does not have. Forget the others.

        ::

            late = await back.unseen(back.unflushed.of("s1"))
        """
        found: list[PositionedEntry] = []
        for start in range(0, len(entries), LOOK_EVERY):
            found += await self._absent(entries[start : start + LOOK_EVERY])
        return found

    async def look(self) -> None:
        """Forget the entries that other processes have flushed. Called once in a while.

        ::

            if back.unflushed.due:
                await back.look()
        """
        self.unflushed.looked()
        try:
            await self.unseen(list(self.unflushed))
        except (UnavailableError, TimedOutError) as error:
            _log.warning("what was flushed is not looked up: %s", error)

    async def _absent(self, entries: Sequence[PositionedEntry]) -> list[PositionedEntry]:
        """Return the entries that the durable log does not have. Forget the others."""
        if not entries:
            return []
        found = await self._durable.find(entries)
        known = [
            (one, what.outcome is not None or what.rested)
            for one, what in zip(entries, found, strict=True)
        ]
        self._forget([one for one, is_known in known if is_known])
        return [one for one, is_known in known if not is_known]

    def _forget(self, entries: Sequence[PositionedEntry]) -> None:
        self.unflushed.forget((one.entry.session, one.entry.id) for one in entries)


def positioned(batch: Sequence[LogEntry], appended: Appended) -> list[PositionedEntry]:
    """Return entries with the positions and times that the hot log gave them.

    >>> positioned([], Appended({}, {}))
    []
    """
    found = []
    for entry in batch:
        key = entry.key
        when = appended.first.get(key)
        there = entry if when is None else replace(entry, occurred_at=when)
        found.append(PositionedEntry(there, *appended.positions[key], appended.marks[key]))
    return found
