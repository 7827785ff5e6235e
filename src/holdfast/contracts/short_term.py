"""Working states, as agents use them."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.front import Front
from holdfast.spi.states import StateStorage
from holdfast.values.checks import (
    check_count,
    check_list,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.values.codec import encode_fields
from holdfast.values.errors import InvalidInputError, NotFoundError, NotSupportedError
from holdfast.values.states import StateSnapshot, StateVersion, StateWrite

MAX_STATES = 1000
"""How many states one call may read."""

MAX_VERSIONS = 1000
"""How many versions of a state may be kept."""

_LAST = (1 << 63) - 1


@runtime_checkable
class ShortTermMemory(Protocol):
    """Key-value state that lives as long as one session, with the methods that every agent needs.

    ``ShortTerm`` has the further methods of Holdfast's engines.
    """

    @abstractmethod
    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the state of a session, or ``{}``; with ``keys`` only those keys, if present.

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
    ) -> int | None:
        """Replace the whole state.

        Raises ``VersionConflictError`` if the state does not have ``expected_version``. Returns the
        new version, or ``None`` if the store has no versions.

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
    ) -> int | None:
        """Merge ``patch`` into the top level of the state and drop ``delete_keys``, in one step.

        ::

            await short_term.update_state("s1", {"step": 2}, delete_keys=["draft"])
        """
        ...

    @abstractmethod
    async def clear(self, session_id: str) -> None:
        """Delete the state of a session, if there is one.

        ::

            await short_term.clear("s1")
        """
        ...


@runtime_checkable
class ShortTerm(ShortTermMemory, Protocol):
    """Key-value state that lives as long as one session.

    A state is a JSON object. Its keys are any text. The order of its top-level keys is not kept,
    that of nested objects is. Change it with ``update_state``: reading it and setting it again
    loses concurrent writes. Where a write depends on what was read, pass the version of the
    snapshot that was read as ``expected_version``. Versions are opaque: compare them, do not count
    with them. With Redis, a write while Redis is down returns a number that is no version: as
    ``expected_version`` it raises ``VersionConflictError``, so read the state again first.

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
    - set_state and update_state return the new version
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
    - get_many returns a snapshot for each session in the order asked
    - get_many of an unknown session is an empty snapshot
    - get_many of no sessions is an empty result
    - get_many of a text in place of a list of ids is refused
    - get_many of more than 1000 sessions is refused
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
    - versions lists the kept versions of a state newest first
    - a snapshot at a version has the state that was written with it
    - a snapshot at a version may be of some keys
    - as many versions are kept as the store was opened for
    - without kept versions the list is empty and only the newest can be read
    - a page of versions goes on before the last one
    - a version that is not kept is not found
    - a refused write makes no version
    - concurrent writes leave versions that were states
    - a clear deletes all versions of a state
    - an expired state has no versions
    - a state that begins again has only versions of its own
    - versions of one session are not found in another
    - versions of one tenant are not found in another
    - versions are still there after a reopen
    - a version that is no number or negative is refused
    """

    @abstractmethod
    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """Replace the whole state, and return its new version.

        Raises ``VersionConflictError`` if the state does not have ``expected_version``. ::

            version = await short_term.set_state("s1", {"step": 1}, ttl_seconds=3600)
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
    ) -> int:
        """Merge ``patch`` into the state, drop ``delete_keys``, and return the new version.

        ::

            version = await short_term.update_state("s1", {"step": 2}, expected_version=version)
        """
        ...

    @abstractmethod
    async def get_many(self, session_ids: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of several sessions, one snapshot for each, in one round trip.

        Each snapshot is consistent in itself; two of them may be from different times. ::

            app, user, session = await short_term.get_many(["app", "user:ana", "s1"])
        """
        ...

    @abstractmethod
    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None, at: int | None = None
    ) -> StateSnapshot:
        """Return the state with its version and its expiry, read atomically.

        ``at`` returns the state as it was at that version. Raises ``NotFoundError`` if the version
        is not kept: see ``versions``. ::

            seen = await short_term.snapshot("s1")
            await short_term.set_state("s1", better(seen.state), expected_version=seen.version)
        """
        ...

    @abstractmethod
    async def versions(
        self, session_id: str, *, before: int | None = None, limit: int = 100
    ) -> list[StateVersion]:
        """Return the kept versions of a state, the newest first, for ``snapshot(at=)``.

        The setting ``state_versions`` is how many are kept, 0 by default. They are deleted with the
        state. ``before`` is the last version of the previous page. ::

            for one in await short_term.versions("s1"):
                print(one.written_at, (await short_term.snapshot("s1", at=one.version)).state)
        """
        ...


class States(Front, ShortTerm):
    """Implements ``ShortTerm``: checks the arguments, then calls the engine's storage.

    ``ttl_seconds`` is the default for writes. ``kept_versions`` is how many versions of a state are
    kept, the newest included. ::

        short_term = States(PostgresStates(engine, tenant="acme"), ttl_seconds=86_400)
    """

    def __init__(
        self,
        storage: StateStorage,
        *,
        ttl_seconds: float | None = None,
        kept_versions: int = 0,
    ) -> None:
        if kept_versions and not storage.keeps_versions:
            raise NotSupportedError(
                "short_term",
                "earlier versions of a state",
                why="set HOLDFAST_STATE_VERSIONS to 0, or use Postgres, embedded or a server",
            )
        self._storage = storage
        self._ttl_seconds = ttl_seconds
        self._kept_versions = kept_versions

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the state of a session, or ``{}``."""
        session, wanted = self._wanted(session_id, keys)
        if wanted is not None and not wanted:
            return {}
        return (await self._storage.read(session, wanted)).state

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """Replace the whole state, and return its new version."""
        session = self._scope.id("session_id", session_id)
        values = self._fields("state", state)
        expected = check_optional_count("expected_version", expected_version)
        window = self._window(ttl_seconds)
        write = StateWrite(
            session, values, ttl_seconds=window, fresh=True, kept_versions=self._kept_versions
        )
        return await self._storage.write(write, expected)

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """Merge a patch into the state, and return its new version."""
        session = self._scope.id("session_id", session_id)
        values = self._fields("patch", patch)
        dropped = dropped_keys("delete_keys", delete_keys, values)
        expected = check_optional_count("expected_version", expected_version)
        window = self._window(ttl_seconds)
        write = StateWrite(session, values, dropped, window, kept_versions=self._kept_versions)
        return await self._storage.write(write, expected)

    async def get_many(self, session_ids: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of several sessions, in one round trip."""
        asked = check_list("session_ids", session_ids)
        if len(asked) > MAX_STATES:
            raise InvalidInputError(
                "session_ids",
                f"has {len(asked)} ids, and at most {MAX_STATES} are allowed: call it in parts",
            )
        sessions = [self._scope.id(f"session_ids[{at}]", one) for at, one in enumerate(asked)]
        found = await self._storage.read_many(sessions) if sessions else []
        return [self._scope.own_state(one) for one in found]

    async def clear(self, session_id: str) -> None:
        """Delete the state of a session."""
        await self._storage.clear(self._scope.id("session_id", session_id))

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None, at: int | None = None
    ) -> StateSnapshot:
        """Return the state with its version and its expiry, as it is or was."""
        version = check_optional_count("at", at)
        session, wanted = self._wanted(session_id, keys)
        if version is None:
            return self._scope.own_state(await self._storage.read(session, wanted))
        found = await self._storage.read_version(session, version) if version else None
        if found is None:  # as at version 0, which is that of no state
            raise NotFoundError("state version", f"{session_id}@{version}")
        if wanted is not None:
            state = {key: value for key, value in found.state.items() if key in wanted}
            found = dataclasses.replace(found, state=state)
        return self._scope.own_state(found)

    async def versions(
        self, session_id: str, *, before: int | None = None, limit: int = 100
    ) -> list[StateVersion]:
        """Return the kept versions of a state, the newest first."""
        session = self._scope.id("session_id", session_id)
        until = check_optional_count("before", before)
        most = min(check_count("limit", limit), MAX_VERSIONS)
        return await self._storage.versions(session, _LAST if until is None else until, most)

    def _wanted(self, session_id: object, keys: object) -> tuple[str, set[str] | None]:
        session = self._scope.id("session_id", session_id)
        return session, None if keys is None else _keys("keys", keys)

    def _fields(self, field: str, state: dict[str, Any]) -> dict[str, str]:
        values = encode_fields(state, field=field)
        self._limits.check_value(field, *values, *values.values())
        return values

    def _window(self, ttl_seconds: float | None) -> float | None:
        ttl = self._ttl_seconds if ttl_seconds is None else ttl_seconds
        return None if ttl is None else check_seconds("ttl_seconds", ttl)


def dropped_keys(field: str, keys: object, values: Mapping[str, str]) -> tuple[str, ...]:
    """Check the keys that a patch drops: a list of texts, none of which the patch sets.

    >>> dropped_keys("delete_keys", ["draft"], {"step": "2"})
    ('draft',)
    """
    dropped = _keys(field, keys)
    if not dropped.isdisjoint(values):
        raise InvalidInputError(
            field, "must not contain a key that is in the patch: remove it from one of them"
        )
    return tuple(dropped)


def _keys(field: str, keys: object) -> set[str]:
    """Check top-level keys of a state: a list of any texts."""
    return {check_text(f"{field}[{at}]", key) for at, key in enumerate(check_list(field, keys))}
