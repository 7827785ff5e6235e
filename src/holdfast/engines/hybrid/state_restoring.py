"""Restoring working states from the durable store: after a loss, and after an eviction."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from weakref import WeakValueDictionary

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker
from holdfast.engines.hybrid.metrics import HybridMetrics
from holdfast.engines.hybrid.unflushed import Unsaved
from holdfast.spi.hybrid.state_snapshots import (
    DurableStates,
    RemovedStateError,
    SavedState,
)
from holdfast.spi.states import HotStates
from holdfast.values.failpoints import hit

_log = logging.getLogger("holdfast.hybrid")


@dataclass(frozen=True, slots=True)
class Kept:
    """A state as it exists outside the hot store: saved, and remembered by this process.

    >>> Kept(None, base=0, stamp=0, as_of=None).mine
    False
    """

    state: SavedState | None
    base: int
    """The version that the durable store has."""

    stamp: int
    """The stamp of the last fallback write that it includes."""

    as_of: datetime | None
    """When it was saved, if another process may have acknowledged writes since."""

    eviction: int = 0
    """The last eviction from the hot store that the durable store has recorded."""

    mine: bool = False
    """Whether it includes unsaved writes of this process."""


class StateRestoring:
    """Restores the states of one tenant, including this process's unsaved writes.

    ::

        there, kept = await restoring.restored("s1")
    """

    def __init__(
        self,
        hot: HotStates,
        saved: DurableStates,
        unsaved: Unsaved,
        *,
        tenant: str,
        breaker: CircuitBreaker,
        metrics: HybridMetrics,
    ) -> None:
        self._hot = hot
        self._saved = saved
        self._unsaved = unsaved
        self._tenant = tenant
        self._breaker = breaker
        self._metrics = metrics
        self._flights: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def restored(self, session_id: str) -> tuple[bool, Kept]:
        """Restore a state, once for concurrent callers. Returns whether the hot store has one now.

        ::

            there, kept = await restoring.restored("s1")
        """
        async with self._flights.setdefault(session_id, asyncio.Lock()):
            there, kept = await self._restored(session_id)
            if kept.state is not None and kept.mine:
                self._metrics.rewritten += 1
                _log.warning("Redis lost state %s: restored with this process's writes", session_id)
            if kept.state is not None and kept.as_of is not None:
                _log.error("state %s is as of %s: later writes may be lost", session_id, kept.as_of)
            return there, kept

    async def _restored(self, session_id: str) -> tuple[bool, Kept]:
        eviction = 0
        while True:
            kept = await self.kept(session_id)
            if kept.state is None:
                return False, kept
            hit("state_restore.after_load")
            restore = partial(
                self._hot.restore,
                kept.state,
                base=kept.base,
                unsaved=kept.mine,
                as_of=kept.as_of,
                eviction=max(eviction, kept.eviction),
            )
            try:
                return await self._breaker.call(restore), kept
            except RemovedStateError as error:
                # What was read before the eviction may be outdated: read it again.
                eviction = error.eviction

    async def kept(self, session_id: str) -> Kept:
        """Return a state as it was saved, with the writes of this process since then.

        ::

            kept = await restoring.kept("s1")
        """
        kept = await self._saved.load(self._tenant, session_id)
        base, stamp, eviction = (
            (0, 0, 0) if kept is None else (kept.version, kept.stamp, kept.eviction)
        )
        others = kept is not None and kept.writers - {self._hot.writer}
        as_of = kept.saved_at if kept is not None and others else None
        saved = None if kept is None or kept.gone else kept
        mine = self._unsaved.get(session_id)
        if mine is not None and base >= mine[1].version:
            self._unsaved.forget(session_id, version=base)
            mine = None
        if mine is None:
            return Kept(saved, base, stamp, as_of, eviction)
        return Kept(mine[0].over(saved), base, stamp, as_of, eviction, mine=True)
