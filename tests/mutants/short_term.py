from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from holdfast.contracts.short_term import States
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.values.states import StateSnapshot, StateVersion, StateWrite
from tests.mutants.registry import mutant


@mutant("short_term", "test_100_concurrent_patches_of_different_keys_all_survive")
class UpdateStateIsGetAndSet(InMemoryStates):
    """A patch is a read and then a write, with time between them."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        if not write.fresh and not write.dropped and expected is None and not write.ttl_seconds:
            present = self._present(write.session)
            whole = {**(present.values if present else {}), **write.values}
            await asyncio.sleep(0)
            write = replace(write, values=whole, fresh=True)
        return await super().write(write, expected)


@mutant("short_term", "test_delete_keys_removes_keys_in_the_same_step_as_the_patch")
class DeletesAfterwards(InMemoryStates):
    """The patch is written first, and the keys are deleted a moment later."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        if write.values and write.dropped:
            await super().write(replace(write, dropped=()), expected)
            await asyncio.sleep(0)
            write, expected = StateWrite(write.session, dropped=write.dropped), None
        return await super().write(write, expected)


@mutant("short_term", "test_set_state_replaces_with_no_moment_in_which_the_state_is_empty")
class SetStateClearsFirst(InMemoryStates):
    """A replacement removes the old state, and others can look in between."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        version = await super().write(write, expected)
        if write.fresh:
            whole = self._data.states.pop(write.session)
            await asyncio.sleep(0)
            self._data.states[write.session] = whole
        return version


@mutant("short_term", "test_a_none_value_stores_null")
class NoneDeletes(States):
    """A patch with None removes the key."""

    async def update_state(self, session_id: str, patch: dict[str, Any], **options: Any) -> int:
        version = await super().update_state(session_id, patch, **options)
        nothing = [key for key, value in patch.items() if value is None]
        if nothing:
            version = await super().update_state(session_id, {}, delete_keys=nothing)
        return version


@mutant("short_term", "test_a_read_does_not_start_the_window_again")
class ReadsKeepAlive(States):
    """A read starts the window again."""

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        seen = await self.snapshot(session_id, keys=keys)
        if seen.expires_at:
            await self.update_state(session_id, {})
        return seen.state


@mutant(
    "short_term",
    "test_a_version_is_never_used_again_after_a_clear",
    "test_a_version_is_never_used_again_after_expiry",
)
class VersionsStartAgain(InMemoryStates):
    """Versions count the writes of what is stored now, from 1."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        present = self._present(write.session)
        self._data.last_version = present.version if present else 0
        return await super().write(write, expected)


@mutant("short_term", "test_of_many_writers_who_expect_the_same_version_one_wins")
class VersionIsCheckedTooEarly(InMemoryStates):
    """The version is compared, and then the write waits."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        present = self._present(write.session)
        if expected and not write.fresh and present and present.version == expected:
            expected = None
            await asyncio.sleep(0)
        return await super().write(write, expected)


@mutant("short_term", "test_a_write_without_ttl_seconds_keeps_the_window")
class ReplacingForgetsTheWindow(InMemoryStates):
    """A replacement without ttl_seconds lives for ever."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        version = await super().write(write, expected)
        if write.fresh and write.ttl_seconds is None:
            self._data.states[write.session].expires_at = None
        return version


@mutant("short_term", "test_set_state_and_update_state_return_the_new_version")
class ReturnsTheVersionBefore(InMemoryStates):
    """A write returns the version that it replaced."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        present = self._present(write.session)
        await super().write(write, expected)
        return present.version if present else 0


@mutant("short_term", "test_get_many_returns_a_snapshot_for_each_session_in_the_order_asked")
class ReadsEachSessionOnce(InMemoryStates):
    """A session that is asked for twice is there once."""

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        return await super().read_many(list(dict.fromkeys(sessions)))


@mutant("short_term", "test_get_many_of_an_unknown_session_is_an_empty_snapshot")
class LeavesUnknownSessionsOut(InMemoryStates):
    """Sessions without a state are left out."""

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        return [one for one in await super().read_many(sessions) if one.version]


@mutant("short_term", "test_a_clear_deletes_all_versions_of_a_state")
class ClearKeepsVersions(InMemoryStates):
    """The versions of a cleared state can still be read."""

    cleared: ClassVar[dict[tuple[int, str], list[StateVersion]]] = {}

    async def clear(self, session: str) -> None:
        self.cleared[id(self._engine), session] = await self.versions(session, 1 << 62, 9)
        await super().clear(session)

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        found = await super().versions(session, before, limit)
        return found or self.cleared.get((id(self._engine), session), [])


@mutant("short_term", "test_an_expired_state_has_no_versions")
class VersionsOutliveTheirState(InMemoryStates):
    """A version is found although the state has expired."""

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        state = self._data.states.get(session)
        found = reversed(state.earlier.items() if state else ())
        return [StateVersion(at, one.written_at) for at, one in found if at < before][:limit]


@mutant("short_term", "test_as_many_versions_are_kept_as_the_store_was_opened_for")
class KeepsOneVersionTooMany(InMemoryStates):
    """One version more is kept than was asked for."""

    async def write(self, write: StateWrite, expected: int | None) -> int:
        more = write.kept_versions and write.kept_versions + 1
        return await super().write(replace(write, kept_versions=more), expected)


@mutant("short_term", "test_a_version_that_is_not_kept_is_not_found")
class FindsTheVersionBefore(InMemoryStates):
    """A version that is not there is answered by the newest one before it."""

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        kept = await self.versions(session, version + 1, 1)
        return await super().read_version(session, kept[0].version if kept else version)
