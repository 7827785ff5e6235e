"""The state of a session, as it is read and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A state with its version, for compare-and-set, and its expiry.

    >>> StateSnapshot({"step": 2}, version=7).version
    7
    """

    state: dict[str, Any]
    version: int = 0
    """The value for ``expected_version``; 0 if there is no state."""

    expires_at: datetime | None = None
    """When the state expires unless it is written again; ``None`` for never."""

    degraded: str = ""
    """Empty, or why this may be outdated: the store that has the newest state is down."""

    as_of: datetime | None = None
    """``None``, or when this was saved. Redis has lost its data since then, with any write
    that another process acknowledged after this time."""


class StateVersion(NamedTuple):
    """A version of a state that is kept, and when it was written.

    >>> from datetime import UTC
    >>> StateVersion(7, datetime(2030, 1, 1, tzinfo=UTC)).version
    7
    """

    version: int
    written_at: datetime
    """By the clock of the store."""


@dataclass(frozen=True, slots=True)
class StatePatch:
    """A change of a session's state for ``episodes.append``, as by ``short_term.update_state``.

    >>> StatePatch("s1", {"step": 2}, expected_version=7).delete_keys
    ()
    """

    session_id: str
    patch: dict[str, Any] = field(default_factory=dict)
    delete_keys: Sequence[str] = ()
    expected_version: int | None = None
    ttl_seconds: float | None = None


class Patched(list[Item], Generic[Item]):
    """A list of stored items, with the new versions of the states that were patched in that step.

    >>> Patched(["event"], versions=[7]).versions
    [7]
    """

    def __init__(self, items: Iterable[Item] = (), *, versions: Sequence[int] = ()) -> None:
        super().__init__(items)
        self.versions = list(versions)
        """In the order of the patches; empty if no state was patched."""


@dataclass(frozen=True, slots=True)
class StateWrite:
    """A checked write to a state: the keys that it sets and drops, and its time to live.

    >>> StateWrite("s1", {"step": "2"}).fresh
    False
    """

    session: str
    values: dict[str, str] = field(default_factory=dict)
    dropped: Sequence[str] = ()
    ttl_seconds: float | None = None
    fresh: bool = False
    """Whether it replaces the whole state. The time to live of the old state is kept."""

    gone: bool = False
    """Whether it deletes the state, with its time to live."""

    kept_versions: int = 0
    """How many versions of the state are kept, the newest included."""

    def merged(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Return the values of a state after this write.

        >>> StateWrite("s1", {"b": "2"}, dropped=["a"]).merged({"a": "1", "c": "3"})
        {'c': '3', 'b': '2'}
        """
        if self.fresh:
            return self.values
        kept = {key: text for key, text in stored.items() if key not in self.dropped}
        return kept | self.values


class ExpectedWrite(NamedTuple):
    """A checked write to a state, and the version that the state must have; ``None`` for any."""

    write: StateWrite
    expected: int | None
