"""Consolidation of working states: save those that changed, apply fallback writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engines.hybrid.circuit_breaker import HotStoreDownError
from holdfast.engines.hybrid.consolidation import STATES_AT_ONCE
from holdfast.engines.hybrid.state_commits import save
from holdfast.engines.hybrid.states import HybridStates
from holdfast.spi.hybrid.state_snapshots import (
    DirtyStates,
    DurableStates,
    FallbackWrites,
    SavedState,
)
from holdfast.values.errors import UnavailableError
from holdfast.values.failpoints import hit


async def save_states(
    dirty: DirtyStates,
    durable: DurableStates,
    tenant: str,
    shard: int,
    *,
    limit: int = STATES_AT_ONCE,
    saved: Callable[[Sequence[SavedState]], None] | None = None,
) -> int:
    """Save some states that have changed. Returns how many.

    A state that changes again meanwhile stays marked as changed, and is saved again. ::

        await save_states(dirty, durable, "acme", 7)
    """
    changed = await dirty.changed(tenant, shard, limit=limit)
    hit("state.after_read")
    if changed:
        kept = await save(dirty, durable, tenant, shard, changed)
        if saved is not None:
            saved(kept)
        hit("state.after_save")
        await dirty.saved(tenant, shard, changed)
    return len(changed)


async def merge_fallback_writes(
    fallback_writes: FallbackWrites,
    states: Callable[[str], HybridStates],
    *,
    limit: int = STATES_AT_ONCE,
) -> int:
    """Apply the fallback writes of all processes to the hot states. Returns for how many states.

    ::

        await merge_fallback_writes(fallback_writes, states_of)
    """
    waiting = await fallback_writes.waiting(limit=limit)
    for tenant, session in waiting:
        try:
            await states(tenant).merge(session)
        except HotStoreDownError as error:
            raise UnavailableError("redis", str(error)) from error
    return len(waiting)
