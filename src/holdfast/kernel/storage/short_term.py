"""The state of a session: what an agent works with now."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A state with its version, for compare and set, and with the moment it expires.

    >>> StateSnapshot({"step": 2}, version=7).version
    7
    """

    state: dict[str, Any]
    version: int = 0
    """What ``expected_version`` takes; 0 when there is no state."""

    expires_at: datetime | None = None
    """When the state expires unless it is written again; ``None`` for never."""

    degraded: str = ""
    """Empty, or why this may not be the newest: the store that has it does not answer."""

    as_of: datetime | None = None
    """``None``, or when this was saved: the hot store lost its data since, and with it any write
    that another process had acknowledged after this time."""


@dataclass(frozen=True, slots=True)
class StateWrite:
    """A write to a state, checked: what it sets, what it removes, and what was there before.

    >>> StateWrite("s1", {"step": "2"}).fresh
    False
    """

    session: str
    values: dict[str, str] = field(default_factory=dict)
    dropped: Sequence[str] = ()
    ttl_seconds: float | None = None
    fresh: bool = False
    """Nothing of what was there before is left but its window."""

    gone: bool = False
    """The state is removed, window and all."""


@runtime_checkable
class ShortTermMemory(Protocol):
    """Key-value state that lives as long as one session, with the methods that every agent needs.

    What our engines have besides is in ``ShortTerm``.
    """

    @abstractmethod
    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``; with ``keys`` only those of them that are there.

        ::

            state = await short_term.get_state("s1", keys=["current_task"])
        """
        ...

    @abstractmethod
    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state; ``VersionConflictError`` if it is not at the expected version.

        ::

            await short_term.set_state("s1", {"step": 1}, ttl_seconds=3600)
        """
        ...

    @abstractmethod
    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Merge ``patch`` into the top level of the state and drop ``delete_keys``, in one step.

        ::

            await short_term.update_state("s1", {"step": 2}, delete_keys=["draft"])
        """
        ...

    @abstractmethod
    async def clear(self, session_id: str) -> None:
        """Remove the state of a session, if there is one.

        ::

            await short_term.clear("s1")
        """
        ...


@runtime_checkable
class ShortTerm(ShortTermMemory, Protocol):
    """Key-value state that lives as long as one session.

    A state is a JSON object. Its keys are any text; their order is not promised, that of nested
    objects is. Change it with ``update_state``: reading it and setting it again loses the writes
    of others. Where a write depends on what was read, pass the version of the snapshot that was
    read as ``expected_version``. Versions are opaque: compare them, do not count with them.

    Promises:

    - a state comes back as it was set
    - the state of an unknown session is empty
    - set_state replaces the whole state
    - set_state replaces with no moment in which the state is empty
    - update_state merges the top-level keys of the patch
    - update_state replaces a nested value as a whole
    - update_state makes the state of an unknown session
    - 100 concurrent patches of different keys all survive
    - a none value stores null
    - delete_keys removes keys in the same step as the patch
    - deleting a key that is not there does nothing
    - a key both patched and deleted is refused
    - an empty patch is a write too and makes an empty state
    - keys reads only those keys
    - an empty list of keys reads nothing
    - a text in place of a list of keys is refused
    - a key is any text, the empty one included
    - values come back exactly as they went in
    - a value that is not json is refused by its path and nothing is written
    - a session id that is not an id is refused
    - a snapshot has the state and its version
    - the version of an absent state is zero
    - each write gives a higher version
    - a version is never used again after a clear
    - a version is never used again after expiry
    - a write with the expected version is done
    - a write with another expected version is a version conflict and writes nothing
    - an expected version of zero means that there must be no state yet
    - of many writers who expect the same version one wins
    - a negative expected version is refused
    - a state without ttl_seconds never expires
    - a state expires when its ttl_seconds have passed
    - every write starts the window again
    - a read does not start the window again
    - a write without ttl_seconds keeps the window
    - a write with ttl_seconds sets a new window
    - a snapshot says when the state expires
    - a state written after expiry has neither the old keys nor the old window
    - a ttl_seconds of zero or less is refused
    - clear removes the state
    - clear is idempotent
    - a state written after a clear does not expire by the old window
    - one session never sees another's state
    - one tenant never sees another's state
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a state is still there after a reopen
    """

    @abstractmethod
    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry, read at one moment.

        ::

            seen = await short_term.snapshot("s1")
            await short_term.set_state("s1", better(seen.state), expected_version=seen.version)
        """
        ...
