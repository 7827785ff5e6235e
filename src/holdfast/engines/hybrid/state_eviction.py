"""Eviction of working states from the hot store: only states that are saved and unused.

It has three steps. The process may die after each:

1. In the hot store: choose the states, and unregister their writers.
2. In the durable store: delete the recorded writers of each state that it has in exactly that
   version and to which no writer has registered since step 1. From here on the absence of such a
   state from the hot store is no loss.
3. In the hot store: delete the states that were not written since step 1.

A state that disappears after step 2 in another way, such as by ``FLUSHALL``, is restored in full
too. A writer after step 1 registers before it writes: either step 2 sees the registration, or the
writer registers after step 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.spi.hybrid.state_snapshots import CleanStates, DurableStates
from holdfast.values.failpoints import hit


async def evict_states(
    clean: CleanStates,
    durable: DurableStates,
    tenant: str,
    shard: int,
    sessions: Sequence[str],
    *,
    unused_seconds: float,
) -> int:
    """Evict the states that are saved and unused. Returns how many.

    ::

        await evict_states(clean, durable, "acme", 7, ["s1"], unused_seconds=3600)
    """
    eviction = await clean.begin_eviction(tenant, shard, sessions, unused_seconds=unused_seconds)
    hit("state_evict.after_begin")
    if not eviction.states:
        return 0
    saved = await durable.evict(tenant, eviction)
    hit("state_evict.after_durable")
    return await clean.evict(tenant, shard, eviction, saved)
