"""The highest log position that this process has seen, for its most recently used sessions."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

from holdfast.engines.hybrid.circuit_breaker import HotStoreDownError
from holdfast.engines.hybrid.metrics import HybridMetrics
from holdfast.spi.hybrid.hot_entry import BEGINNING, PositionedEntry

_log = logging.getLogger("holdfast.hybrid")

SESSIONS = 10_000
"""How many sessions are remembered: the most recently seen."""


class Horizon:
    """The highest position that was read or written, by session.

    It counts and logs the degraded reads: those that may miss newer events. ::

        why = horizon.degraded("s1", error)
    """

    def __init__(self, metrics: HybridMetrics) -> None:
        self._metrics = metrics
        self._positions: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __contains__(self, session: str) -> bool:
        return session in self._positions

    def reach(self, entries: Sequence[PositionedEntry]) -> None:
        """Record that this process has seen these entries."""
        for one in entries:
            session = one.entry.session
            before = self._positions.pop(session, one.position)
            self._positions[session] = max(before, one.position)
        while len(self._positions) > SESSIONS:
            self._positions.popitem(last=False)

    def position(self, session: str) -> tuple[int, int]:
        """Return the highest position of a session that was seen, if it is remembered."""
        return self._positions.get(session, BEGINNING)

    def degraded(
        self, session: str, why: HotStoreDownError, reached: tuple[int, int] | None = None
    ) -> str:
        """Count and log a read without the hot log. Returns a message with the known positions."""
        self._metrics.degraded_reads += 1
        text = f"session {session}: Redis does not answer, newer events may be missing"
        if reached is not None:
            text += f"; stored up to epoch {reached[0]}, number {reached[1]}"
        if seen := self._positions.get(session):
            text += f"; seen by this process up to epoch {seen[0]}, number {seen[1]}"
        _log.warning("%s: %s", text, why)
        return f"{text} ({why})"
