"""Random reads and writes of few states with few keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.testing.harness import Harness
from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.states import StateSnapshot

SESSIONS = st.sampled_from(["s1", "s2"])
KEYS = st.sampled_from(["", "a", "b", "a\x00"])
VALUES: st.SearchStrategy[Any] = st.sampled_from([None, 0, 1.0, "x", [1, {"y": None}], {}])
STATES = st.dictionaries(KEYS, VALUES, max_size=3)
TTLS = st.sampled_from([None, None, 10, 60])


def _seen(snapshot: StateSnapshot) -> tuple[Any, bool, bool]:
    return snapshot.state, snapshot.version == 0, snapshot.expires_at is None


class ShortTermMachine(EngineMachine):
    """States that are set, patched, cleared, compared and left to expire."""

    contract = "short_term"

    def options_for(self, engine: Harness) -> dict[str, Any]:
        """Versions are kept where the engine can."""
        return {"kept_versions": engine.state_versions} if engine.state_versions else {}

    def __init__(self) -> None:
        super().__init__()
        self.versions: list[tuple[str, int, int]] = []

    @rule(session=SESSIONS, state=STATES, ttl=TTLS)
    def set_state(self, session: str, state: dict[str, Any], ttl: float | None) -> None:
        """Replace."""
        self.keep(session, lambda store: store.set_state(session, state, ttl_seconds=ttl))

    @rule(session=SESSIONS, patch=STATES, dropped=st.lists(KEYS, max_size=2), ttl=TTLS)
    def update_state(
        self, session: str, patch: dict[str, Any], dropped: list[str], ttl: float | None
    ) -> None:
        """Patch."""
        self.keep(
            session,
            lambda store: store.update_state(session, patch, delete_keys=dropped, ttl_seconds=ttl),
        )

    def keep(self, session: str, write: Callable[[Any], Any]) -> None:
        """Write, and keep the pair of versions that were returned for a later write."""
        left, right = self.each(write, write, bool)
        if isinstance(left, int) and isinstance(right, int):
            self.versions.append((session, left, right))

    @rule(session=SESSIONS)
    def clear(self, session: str) -> None:
        """Remove."""
        self.both(lambda store: store.clear(session))

    @rule(session=SESSIONS, keys=st.none() | st.lists(KEYS, max_size=3))
    def get_state(self, session: str, keys: list[str] | None) -> None:
        """Read."""
        self.both(lambda store: store.get_state(session, keys=keys))

    @rule(sessions=st.lists(SESSIONS, max_size=3))
    def get_many(self, sessions: list[str]) -> None:
        """Read several."""
        self.both(lambda store: store.get_many(sessions), lambda found: list(map(_seen, found)))

    @invariant()
    def same_states(self) -> None:
        """Both hold the same after every step."""
        self.both(lambda store: store.snapshot("s1"), _seen)
        self.both(lambda store: store.snapshot("s2"), _seen)

    @rule(session=SESSIONS)
    def snapshot(self, session: str) -> None:
        """Read with the version, and keep the pair of versions for a later write."""
        left, right = self.each(
            lambda store: store.snapshot(session), lambda store: store.snapshot(session), _seen
        )
        self.versions.append((session, left.version, right.version))

    @precondition(lambda self: self.versions)
    @rule(at=st.integers(0, 3), state=STATES, patch=st.booleans())
    def compare_and_set(self, at: int, state: dict[str, Any], *, patch: bool) -> None:
        """Write with a version that was seen before."""
        session, *versions = self.versions[-1 - at % len(self.versions)]
        method = "update_state" if patch else "set_state"
        left, right = (
            lambda store, version=version: getattr(store, method)(
                session, state, expected_version=version
            )
            for version in versions
        )
        self.each(left, right, bool)

    @precondition(lambda self: self.engine.state_versions)
    @rule(session=SESSIONS, limit=st.sampled_from([0, 2, 100]))
    def read_versions(self, session: str, limit: int) -> None:
        """Read the kept versions of a state."""

        async def kept(store: Any) -> list[Any]:
            found = await store.versions(session, limit=limit)
            assert [one.version for one in found] == sorted((v for v, _ in found), reverse=True)
            return [_seen(await store.snapshot(session, at=one.version)) for one in found]

        self.both(kept)

    @precondition(lambda self: self.versions and self.engine.state_versions)
    @rule(at=st.integers(0, 7))
    def read_at(self, at: int) -> None:
        """Read a version that was seen before, and may be gone."""
        session, *versions = self.versions[-1 - at % len(self.versions)]
        left, right = (
            lambda store, version=version: store.snapshot(session, at=version)
            for version in versions
        )
        self.each(left, right, _seen)

    @rule(seconds=st.sampled_from([1, 5, 10, 50]))
    def wait(self, seconds: int) -> None:
        """Let windows close."""
        self.elapse(seconds)
