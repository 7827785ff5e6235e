"""Working states, in process."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.states import StateStorage, expect_version
from holdfast.values.codec import decode_json
from holdfast.values.states import StateSnapshot, StateVersion, StateWrite


class _Version(NamedTuple):
    values: dict[str, str]
    written_at: datetime


@dataclass
class _State:
    values: dict[str, str]
    version: int
    ttl_seconds: float | None
    expires_at: datetime | None
    earlier: dict[int, _Version] = field(default_factory=dict)
    """The versions that are kept, including the newest, in ascending order."""


@dataclass
class _Data:
    states: dict[str, _State] = field(default_factory=dict)
    last_version: int = 0


class InMemoryStates(StateStorage):
    """Stores working states in a dict.

    >>> states = InMemoryStates(InMemory(), tenant="acme")
    """

    keeps_versions = True

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state; with ``keys``, only these keys of it."""
        present = self._present(session)
        if present is None:
            return StateSnapshot({})
        state = {
            key: decode_json(text)
            for key, text in present.values.items()
            if keys is None or key in keys
        }
        return StateSnapshot(state, present.version, present.expires_at)

    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace or patch a state. Returns its new version."""
        self.check(write, expected)
        return self.put(write)

    def check(self, write: StateWrite, expected: int | None) -> None:
        """Raise ``VersionConflictError`` if the state does not have the expected version."""
        present = self._present(write.session)
        expect_version(write.session, expected, present.version if present else 0)

    def put(self, write: StateWrite) -> int:
        """Replace or patch a state, whatever its version is. Returns the new version."""
        present = self._present(write.session)
        values = write.merged(present.values if present else {})
        window = write.ttl_seconds
        if present and window is None:
            window = present.ttl_seconds
        now = self._engine.now()
        expires_at = None if window is None else now + timedelta(seconds=window)
        self._data.last_version += 1
        version = self._data.last_version
        earlier: dict[int, _Version] = {}
        if write.kept_versions:
            earlier = {**(present.earlier if present else {}), version: _Version(values, now)}
            earlier = dict(list(earlier.items())[-write.kept_versions :])
        self._data.states[write.session] = _State(values, version, window, expires_at, earlier)
        return version

    async def clear(self, session: str) -> None:
        """Delete a state."""
        self._data.states.pop(session, None)

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        """Return the kept versions of a state below ``before``, the newest first."""
        present = self._present(session)
        found = reversed(present.earlier.items() if present else ())
        kept = [StateVersion(at, one.written_at) for at, one in found if at < before]
        return kept[:limit]

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        """Return this version of a state; ``None`` if it is not kept."""
        present = self._present(session)
        if present is None:
            return None
        one = present.earlier.get(version)
        if one is None and present.version != version:
            return None
        values = present.values if one is None else one.values
        state = {key: decode_json(text) for key, text in values.items()}
        return StateSnapshot(state, version, present.expires_at)

    def _present(self, session: str) -> _State | None:
        state = self._data.states.get(session)
        if state and state.expires_at and state.expires_at <= self._engine.now():
            del self._data.states[session]
            return None
        return state
