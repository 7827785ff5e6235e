"""Evicting working states from the hot store: only what is saved, and only while nobody uses it.

Three steps, and whoever does them may die after each:

1. In the hot store: the states are chosen, and their writers do not count as registered any more.
2. In the durable store: where it has that very version, and nobody has registered since step 1, the
   state needs no writer any more. From here on its absence from the hot store is no loss.
3. In the hot store: the states that were not written since step 1 are removed.

A state that leaves after step 2 by another way, such as ``FLUSHALL``, is restored whole as well. A
writer after step 1 is registered first: step 2 sees that, or it comes after step 2.
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
    """Evict those of the states that are saved and unused; returns how many.

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
