"""Acknowledging at level committed: only what a commit of the durable log has named."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from holdfast.kernel.core.errors import EngineError, TimedOutError, UnavailableError
from holdfast.kernel.core.failpoints import hit
from holdfast.kernel.storage.durable_log import DurableLog, Outcome
from holdfast.kernel.storage.hot_entry import PlacedEntry
from holdfast.kernel.storage.hot_log import Appended, HotLog
from holdfast.kernel.storage.log_entry import LogEntry, another_body
from holdfast.memory.consolidation import Consolidator
from holdfast.memory.grants import Grants

_log = logging.getLogger("holdfast.hybrid")

COMMIT_SECONDS = 30.0
"""How long a write at level committed waits for its commit."""


class WriteBack:
    """Sees to it that entries of the hot log of one tenant are in the durable one.

    ::

        places = await back.committed(placed(batch, appended))
    """

    def __init__(
        self,
        hot: HotLog,
        durable: DurableLog,
        consolidator: Consolidator,
        grants: Grants,
        *,
        tenant: str,
    ) -> None:
        self._hot = hot
        self._durable = durable
        self._consolidator = consolidator
        self._metrics = consolidator.metrics
        self._grants = grants
        self._tenant = tenant

    async def committed(
        self, entries: Sequence[PlacedEntry], *, limit_seconds: float = COMMIT_SECONDS
    ) -> dict[str, tuple[int, int]]:
        """The places of entries, once the durable log has committed every one of them.

        What the hot log has lost meanwhile is written to the durable log here: it is still at
        hand. ``TimedOutError`` when it takes too long: whoever repeats it finds out.
        """
        places = {one.entry.key: one.place for one in entries}
        try:
            async with asyncio.timeout(limit_seconds):
                unnamed = await self._flushed(entries)
                if unnamed:
                    places |= await self._read_back(unnamed)
        except TimeoutError as error:
            if isinstance(error, TimedOutError):
                raise
            raise TimedOutError("hybrid", "the commit takes too long") from None
        except UnavailableError as error:
            raise TimedOutError("hybrid", f"not committed yet: {error}") from error
        return places

    async def _flushed(self, entries: Sequence[PlacedEntry]) -> list[PlacedEntry]:
        """Have entries flushed; those that no commit of this process has named."""
        try:
            return await self._consolidator.through(self._tenant, self._hot, entries)
        except (UnavailableError, TimedOutError) as error:
            # Where the durable log answers, it is asked, and has them in a moment.
            _log.warning("%d events are not flushed: %s", len(entries), error)
            return list(entries)

    async def _read_back(self, entries: Sequence[PlacedEntry]) -> dict[str, tuple[int, int]]:
        """Where the durable log has entries that left the hot log; the lost are written to it."""
        places: dict[str, tuple[int, int]] = {}
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
            if found.outcome is None:
                lost.append(one.entry)
            elif found.place is not None:
                places[one.entry.key] = found.place
        return places | await self._rewrite(lost)

    async def _rewrite(self, lost: Sequence[LogEntry]) -> dict[str, tuple[int, int]]:
        """Write to the durable log what the hot log lost before it was flushed."""
        if not lost:
            return {}
        places = await self._durable.append(lost)
        hit("append.after_rewrite")
        self._grants.overtake(lost, places)
        self._metrics.rewritten += len(lost)
        _log.warning(
            "Redis lost %d events before they were flushed: written to the durable log", len(lost)
        )
        return places


def placed(batch: Sequence[LogEntry], appended: Appended) -> list[PlacedEntry]:
    """Entries with where the hot log has put them.

    >>> placed([], Appended({}, {}))
    []
    """
    return [
        PlacedEntry(entry, *appended.places[entry.key], appended.marks[entry.key])
        for entry in batch
    ]
