"""The stores of one tenant, put together from engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from holdfast.contracts.channel import Channel
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.keys import KeyStore
from holdfast.kernel.core.owners import MemoryScope
from holdfast.kernel.storage.agent_memory import MemoryLog
from holdfast.kernel.storage.blob import Blobs
from holdfast.kernel.storage.boards import TaskStore
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.ledger import TaskLedger
from holdfast.kernel.storage.long_term import LongTermMemory
from holdfast.kernel.storage.short_term import ShortTerm
from holdfast.kernel.storage.vector import VectorStore
from holdfast.kernel.storage.wake import SessionWake
from holdfast.wiring.owned_blobs import OwnedBlobs
from holdfast.wiring.owned_ledger import OwnedLedger
from holdfast.wiring.owned_stores import (
    OwnedEpisodes,
    OwnedHistory,
    OwnedLog,
    OwnedLongTerm,
    OwnedShortTerm,
    OwnedWake,
)
from holdfast.wiring.owner_scope import OwnerScope


@dataclass(frozen=True, slots=True)
class Stores:
    """One store for each contract, all of one tenant; ``None`` where no engine serves it."""

    blobs: Blobs | None = None
    history: HistoryProvider | None = None
    vectors: VectorStore | None = None
    graph: Graph | None = None
    short_term: ShortTerm | None = None
    long_term: LongTermMemory | None = None
    boards: TaskStore | None = None
    tasks: TaskLedger | None = None
    episodes: EpisodicMemory | None = None
    channel: Callable[[str], Channel] | None = None
    keys: KeyStore | None = None
    memory_log: MemoryLog | None = None
    """What ``memory()`` writes to where there are no episodes; no attribute of its own."""
    wakes: SessionWake | None = None
    """What ``memory()`` asks how a session is found; no attribute of its own."""


def stores_of_owner(stores: Stores, owner: str, *, memory: MemoryScope = "owner") -> Stores:
    """The stores of one owner: what is not divided by owner is left out.

    Blobs stay, without what removes them: nobody can guess a ref. ::

        ana = stores_of_owner(stores, "ana")
    """
    scope = OwnerScope(owner, memory)
    return Stores(
        blobs=stores.blobs and OwnedBlobs(stores.blobs),
        history=stores.history and OwnedHistory(stores.history, scope),
        short_term=stores.short_term and OwnedShortTerm(stores.short_term, scope),
        long_term=stores.long_term and OwnedLongTerm(stores.long_term, scope),
        tasks=stores.tasks and cast("TaskLedger", OwnedLedger(stores.tasks, owner)),
        episodes=stores.episodes and OwnedEpisodes(stores.episodes, scope),
        memory_log=stores.memory_log and OwnedLog(stores.memory_log, scope),
        wakes=stores.wakes and OwnedWake(stores.wakes, scope),
    )
