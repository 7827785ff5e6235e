"""Working state at the speed of the hot store, restored from the durable one when it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.failpoints import hit
from holdfast.kernel.storage.short_term import ShortTermMemory, StateSnapshot, check_keys
from holdfast.kernel.storage.state_snapshots import (
    AbsentStateError,
    DirtyStates,
    DurableStates,
    HotStates,
)
from holdfast.memory.consolidation import STATES_AT_ONCE


class HybridShortTerm(ShortTermMemory):
    """``ShortTermMemory`` in a hot store, with the last saved version of each state behind it.

    ::

        short_term = HybridShortTerm(hot, saved, tenant="acme")
    """

    def __init__(self, hot: HotStates, saved: DurableStates, *, tenant: str) -> None:
        self._hot = hot
        self._sure = hot.sure()
        self._saved = saved
        self._tenant = tenant
        self._flights: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``."""
        return (await self.snapshot(session_id, keys=keys)).state

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state."""
        await self._write(
            session_id,
            lambda store: store.set_state(
                session_id, state, expected_version=expected_version, ttl_seconds=ttl_seconds
            ),
        )

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Merge a patch into the state."""
        await self._write(
            session_id,
            lambda store: store.update_state(
                session_id,
                patch,
                delete_keys=delete_keys,
                expected_version=expected_version,
                ttl_seconds=ttl_seconds,
            ),
        )

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session: from the durable store first, so that it stays removed."""
        check_id("session_id", session_id)
        while True:
            version = (await self._hot.snapshot(session_id, keys=[])).version
            await self._saved.clear(self._tenant, session_id, version=version)
            hit("state_clear.after_durable")
            if await self._hot.forget(session_id, version=version):
                return

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        if keys is not None:
            check_keys("keys", keys)
        found = await self._hot.snapshot(session_id, keys=keys)
        if found.version == 0 and await self._restore(session_id):
            return await self._hot.snapshot(session_id, keys=keys)
        return found

    async def _write(
        self, session_id: str, write: Callable[[ShortTermMemory], Awaitable[None]]
    ) -> None:
        while True:
            try:
                return await write(self._hot)
            except AbsentStateError:
                if not await self._restore(session_id):
                    return await write(self._sure)

    async def _restore(self, session_id: str) -> bool:
        """Bring back what was saved, once for all who ask; whether there is a state now."""
        async with self._flights.setdefault(session_id, asyncio.Lock()):
            saved = await self._saved.load(self._tenant, session_id)
            return saved is not None and await self._hot.restore(saved)


async def save_states(
    dirty: DirtyStates,
    durable: DurableStates,
    tenant: str,
    shard: int,
    *,
    limit: int = STATES_AT_ONCE,
) -> int:
    """Save some states that have changed; how many there were.

    A state that changes again meanwhile keeps its mark, and is saved again. ::

        await save_states(dirty, durable, "acme", 7)
    """
    changed = await dirty.changed(tenant, shard, limit=limit)
    hit("state.after_read")
    if changed:
        await durable.save(tenant, changed)
        hit("state.after_save")
        await dirty.saved(tenant, shard, changed)
    return len(changed)
