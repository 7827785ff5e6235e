"""How far this process has seen the log of each session, of as many as it remembers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from holdfast.kernel.storage.hot_entry import PlacedEntry

SESSIONS = 10_000
"""Of how many sessions it is known; those that were seen last."""


class Horizon:
    """The highest place that was read or written, by session.

    >>> horizon = Horizon()
    >>> "s1" in horizon
    False
    """

    def __init__(self) -> None:
        self._places: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __contains__(self, session: str) -> bool:
        return session in self._places

    def of(self, session: str) -> tuple[int, int] | None:
        """How far a session was seen; ``None`` if it was not."""
        return self._places.get(session)

    def reach(self, entries: Sequence[PlacedEntry]) -> None:
        """These entries were seen."""
        for one in entries:
            session = one.entry.session
            before = self._places.pop(session, one.place)
            self._places[session] = max(before, one.place)
        while len(self._places) > SESSIONS:
            self._places.popitem(last=False)
