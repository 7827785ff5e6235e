"""A page of the ids that one owner has, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class IdRanges(NamedTuple):
    """A page as ranges of ids: from ``low`` to before ``high``, and from ``rest`` on.

    There is no second range if ``rest`` is ``None``.
    """

    low: str
    high: str
    rest: str | None


@dataclass(frozen=True, slots=True)
class IdPage:
    """The first ``limit`` ids after ``after`` that begin with one prefix and not with another.

    Ids are ordered by code points. ``other`` is given only without a ``prefix``; both may be empty.

    >>> IdPage("", "holdfast.", "b", 2).of(["d", "a", "holdfast.x", "c", "b", "e"])
    ['c', 'd']
    """

    prefix: str
    other: str
    after: str
    limit: int

    def of(self, ids: Iterable[str]) -> list[str]:
        """Return those of the given ids that are on this page, sorted."""
        return sorted(
            one
            for one in ids
            if one > self.after
            and one.startswith(self.prefix)
            and not (self.other and one.startswith(self.other))
        )[: self.limit]

    def ranges(self) -> IdRanges:
        """Return the ranges that the ids of the page are in, for a query on an index.

        >>> IdPage("", "holdfast.", "", 1).ranges()
        IdRanges(low='', high='holdfast.', rest='holdfast/')
        """
        if self.prefix:
            return IdRanges(self.prefix, _behind(self.prefix), None)
        if self.other:
            return IdRanges("", self.other, _behind(self.other))
        return IdRanges("", "", "")


def _behind(prefix: str) -> str:
    """Return the first text after all that begin with a prefix, which ends with a dot or a colon.

    >>> _behind("holdfast.")
    'holdfast/'
    """
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
