"""How far this process has seen the log of each session, of as many as it remembers."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

from holdfast.engines.hybrid.circuit_breaker import HotStoreDownError
from holdfast.engines.hybrid.metrics import HybridMetrics
from holdfast.spi.hybrid.hot_entry import PositionedEntry

_log = logging.getLogger("holdfast.hybrid")

SESSIONS = 10_000
"""Of how many sessions it is known; those that were seen last."""


class Horizon:
    """The highest position that was read or written, by session.

    It counts and reports the reads that cannot see so far. ::

        why = horizon.degraded("s1", error)
    """

    def __init__(self, metrics: HybridMetrics) -> None:
        self._metrics = metrics
        self._positions: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __contains__(self, session: str) -> bool:
        return session in self._positions

    def reach(self, entries: Sequence[PositionedEntry]) -> None:
        """These entries were seen."""
        for one in entries:
            session = one.entry.session
            before = self._positions.pop(session, one.position)
            self._positions[session] = max(before, one.position)
        while len(self._positions) > SESSIONS:
            self._positions.popitem(last=False)

    def degraded(
        self, session: str, why: HotStoreDownError, reached: tuple[int, int] | None = None
    ) -> str:
        """Count a read that cannot see the hot log, and log how far it sees; the report of it."""
        self._metrics.degraded_reads += 1
        text = f"session {session}: Redis does not answer, newer events may be missing"
        if reached is not None:
            text += f"; stored up to epoch {reached[0]}, number {reached[1]}"
        if seen := self._positions.get(session):
            text += f"; seen by this process up to epoch {seen[0]}, number {seen[1]}"
        _log.warning("%s: %s", text, why)
        return f"{text} ({why})"
