"""Saves working states from Redis in Postgres: concurrent writers share one read and one commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.spi.hybrid.state_snapshots import DirtyStates, DurableStates, SavedState, Written
from holdfast.values.failpoints import hit

_log = logging.getLogger("holdfast.hybrid")


@dataclass(slots=True)
class _Waiting:
    session: str
    written: Written
    committed: bool | None = None


class StateCommits:
    """Saves the states that writers wait for, one batch per shard.

    ::

        if not await commits.commit("acme", 7, "s1", written):
            ...  # the hot store lost it: write it again
    """

    def __init__(self, dirty: DirtyStates, durable: DurableStates) -> None:
        self._dirty = dirty
        self._durable = durable
        self._waiting: dict[tuple[str, int], list[_Waiting]] = {}
        self._locks: dict[tuple[str, int], asyncio.Lock] = {}

    async def commit(self, tenant: str, shard: int, session: str, written: Written) -> bool:
        """Commit a write. Returns whether the durable store has it; if not, the write is lost."""
        mine = _Waiting(session, written)
        waiting = self._waiting.setdefault((tenant, shard), [])
        waiting.append(mine)
        try:
            async with self._locks.setdefault((tenant, shard), asyncio.Lock()):
                # A writer that waited for the lock may find its state saved by the previous holder.
                if mine.committed is None:
                    await self._save(tenant, shard, [*waiting])
        finally:
            waiting.remove(mine)
        return bool(mine.committed)

    async def _save(self, tenant: str, shard: int, waits: list[_Waiting]) -> None:
        asked = [wait for wait in waits if wait.committed is None]
        sessions = list(dict.fromkeys(wait.session for wait in asked))
        states = await self._dirty.read(tenant, shard, sessions)
        hit("state_commit.after_read")
        await save(self._dirty, self._durable, tenant, shard, states)
        kept = await self._durable.versions(tenant, sessions)
        for wait in asked:
            wait.committed = _includes(kept.get(wait.session), wait.written)
        hit("state_commit.after_save")
        await self._dirty.saved(tenant, shard, states)


async def save(
    dirty: DirtyStates,
    durable: DurableStates,
    tenant: str,
    shard: int,
    states: Sequence[SavedState],
) -> list[SavedState]:
    """Save states. Returns those that are saved, now or before.

    A state that was restored from an outdated version lacks what was saved since. It is removed
    from the hot store, and restored from the newest version when it is next used. ::

        kept = await save(dirty, durable, "acme", 7, states)
    """
    if not states:
        return []
    await durable.save(tenant, states)
    kept = await durable.versions(tenant, [one.session for one in states])
    stale = [one for one in states if not one.gone and kept[one.session].lineage != one.lineage]
    if stale:
        for one in stale:
            _log.warning("state %s was restored from an older version: begun again", one.session)
        await dirty.drop(tenant, shard, stale)
    return [one for one in states if one not in stale]


def _includes(kept: SavedState | None, written: Written) -> bool:
    """Return whether the saved state includes a write, or a later clear replaced it."""
    if kept is None or kept.version < written.version:
        return False
    return kept.gone or kept.lineage == written.lineage
