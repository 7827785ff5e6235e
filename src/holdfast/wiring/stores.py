"""The stores of one tenant, put together from engines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from holdfast.contracts.blobs import StoredBlobs
from holdfast.contracts.boards import Boards
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import Checkpoints
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.event_log import Events
from holdfast.contracts.front import Front
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.history import History
from holdfast.contracts.items import Items
from holdfast.contracts.keys import KeyStore
from holdfast.contracts.long_term import LongTerm
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.contracts.schedules import ScheduleStore
from holdfast.contracts.short_term import States
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.vectors import Vectors
from holdfast.contracts.wakes import Wakes
from holdfast.values.limits import Limits
from holdfast.values.owners import MemoryScope
from holdfast.wiring.owned_ledger import OwnedLedger


@dataclass(frozen=True, slots=True)
class Stores:
    """One store for each contract, all of one tenant; ``None`` where no engine serves it."""

    blobs: StoredBlobs | None = None
    history: History | None = None
    vectors: Vectors | None = None
    graph: KnowledgeGraph | None = None
    short_term: States | None = None
    long_term: LongTerm | None = None
    boards: Boards | None = None
    checkpoints: Checkpoints | None = None
    items: Items | None = None
    tasks: TaskLedger | None = None
    schedules: ScheduleStore | None = None
    episodes: EpisodicMemory | None = None
    channel: Callable[[str], Channel] | None = None
    keys: KeyStore | None = None
    memory_log: Events | None = None
    """The log of ``memory()`` if ``episodes`` is ``None``; not an attribute of ``State``."""
    wakes: Wakes | None = None
    """Detects lost events of a session for ``memory()``; not an attribute of ``State``."""

    def use_limits(self, limits: Limits) -> None:
        """Use other limits than the default ones in all stores.

        ::

            stores.use_limits(settings.limits)
        """
        for slot in dataclasses.fields(self):
            store = getattr(self, slot.name)
            if isinstance(store, Front):
                store.use_limits(limits)


def stores_of_owner(stores: Stores, owner: str, *, memory: MemoryScope = "owner") -> Stores:
    """Return the stores of one owner, whose ids no other owner can use; without the API keys.

    Blobs are not separated by owner, but a ref cannot be guessed. ::

        ana = stores_of_owner(stores, "ana")
    """
    scope = OwnerScope(owner, memory)
    blobs = stores.blobs and stores.blobs.for_owner(scope)
    return dataclasses.replace(_of_scope(stores, scope), blobs=blobs)


def stores_of_nobody(stores: Stores, *, memory: MemoryScope = "owner") -> Stores:
    """Return the stores of data without an owner: they refuse ids of owners; no API keys.

    ::

        nobodys = stores_of_nobody(stores)
    """
    return _of_scope(stores, OwnerScope("", memory, is_confined=True))


def _of_scope(stores: Stores, scope: OwnerScope) -> Stores:
    channel = stores.channel
    return Stores(
        blobs=stores.blobs,
        history=stores.history and stores.history.for_owner(scope),
        vectors=stores.vectors and stores.vectors.for_owner(scope),
        graph=stores.graph and stores.graph.for_owner(scope),
        short_term=stores.short_term and stores.short_term.for_owner(scope),
        long_term=stores.long_term and stores.long_term.for_owner(scope),
        boards=stores.boards and stores.boards.for_owner(scope),
        checkpoints=stores.checkpoints and stores.checkpoints.for_owner(scope),
        items=stores.items and stores.items.for_owner(scope),
        tasks=stores.tasks and cast("TaskLedger", OwnedLedger(stores.tasks, scope.owner)),
        schedules=stores.schedules
        and cast("ScheduleStore", OwnedLedger(stores.schedules, scope.owner, "schedules")),
        episodes=stores.episodes and stores.episodes.for_owner(scope),
        channel=channel and (lambda name: channel(scope.id("name", name))),
        memory_log=stores.memory_log and stores.memory_log.for_owner(scope),
        wakes=stores.wakes and stores.wakes.for_owner(scope),
    )
