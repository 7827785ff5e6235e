from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.backends.inmemory.short_term import InMemoryShortTerm
from holdfast.kernel.core.codec import encode_fields
from tests.mutants.registry import mutant


@mutant("short_term", "test_100_concurrent_patches_of_different_keys_all_survive")
class UpdateStateIsGetAndSet(InMemoryShortTerm):
    """A patch is a read and then a write, with time between them."""

    async def update_state(self, session_id: str, patch: dict[str, Any], **options: Any) -> None:
        if options:
            await super().update_state(session_id, patch, **options)
        else:
            encode_fields(patch, field="patch")
            state = await super().get_state(session_id)
            await asyncio.sleep(0)
            await super().set_state(session_id, state | patch)


@mutant("short_term", "test_delete_keys_removes_keys_in_the_same_step_as_the_patch")
class DeletesAfterwards(InMemoryShortTerm):
    """The patch is written first, and the keys are deleted a moment later."""

    async def update_state(self, session_id: str, patch: dict[str, Any], **options: Any) -> None:
        dropped = options.get("delete_keys", ())
        if patch and dropped and not set(dropped) & patch.keys():
            del options["delete_keys"]
            await super().update_state(session_id, patch, **options)
            await asyncio.sleep(0)
            patch, options = {}, {"delete_keys": dropped}
        await super().update_state(session_id, patch, **options)


@mutant("short_term", "test_set_state_replaces_with_no_moment_in_which_the_state_is_empty")
class SetStateClearsFirst(InMemoryShortTerm):
    """A replacement removes the old state, and others can look in between."""

    async def set_state(self, session_id: str, state: dict[str, Any], **options: Any) -> None:
        await super().set_state(session_id, state, **options)
        whole = self._data.states.pop(session_id)
        await asyncio.sleep(0)
        self._data.states[session_id] = whole


@mutant("short_term", "test_a_none_value_stores_null")
class NoneDeletes(InMemoryShortTerm):
    """A patch with None removes the key."""

    async def update_state(self, session_id: str, patch: dict[str, Any], **options: Any) -> None:
        await super().update_state(session_id, patch, **options)
        nothing = [key for key, value in patch.items() if value is None]
        if nothing:
            await super().update_state(session_id, {}, delete_keys=nothing)


@mutant("short_term", "test_a_read_does_not_start_the_window_again")
class ReadsKeepAlive(InMemoryShortTerm):
    """A read starts the window again."""

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        state = await super().get_state(session_id, keys=keys)
        present = self._present(session_id)
        if present and present.ttl_seconds:
            await super().update_state(session_id, {})
        return state


@mutant(
    "short_term",
    "test_a_version_is_never_used_again_after_a_clear",
    "test_a_version_is_never_used_again_after_expiry",
)
class VersionsStartAgain(InMemoryShortTerm):
    """Versions count the writes of what is stored now, from 1."""

    def _write(
        self,
        session_id: str,
        values: dict[str, str],
        expected_version: int | None,
        ttl_seconds: float | None,
    ) -> None:
        present = self._present(session_id)
        self._data.last_version = present.version if present else 0
        super()._write(session_id, values, expected_version, ttl_seconds)


@mutant("short_term", "test_of_many_writers_who_expect_the_same_version_one_wins")
class VersionIsCheckedTooEarly(InMemoryShortTerm):
    """The version is compared, and then the write waits."""

    async def update_state(self, session_id: str, patch: dict[str, Any], **options: Any) -> None:
        expected = options.get("expected_version")
        if expected and (await super().snapshot(session_id)).version == expected:
            del options["expected_version"]
            await asyncio.sleep(0)
        await super().update_state(session_id, patch, **options)


@mutant("short_term", "test_a_write_without_ttl_seconds_keeps_the_window")
class ReplacingForgetsTheWindow(InMemoryShortTerm):
    """A replacement without ttl_seconds lives for ever."""

    async def set_state(self, session_id: str, state: dict[str, Any], **options: Any) -> None:
        await super().set_state(session_id, state, **options)
        if options.get("ttl_seconds") is None:
            self._data.states[session_id].expires_at = None
