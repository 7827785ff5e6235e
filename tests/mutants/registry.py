"""Named, deliberately broken variants of the in-memory engine, and the promises they break."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import StoredBlobs
from holdfast.contracts.boards import Boards
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import Checkpoints
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.history import History
from holdfast.contracts.items import Items
from holdfast.contracts.keys import KeyStore
from holdfast.contracts.long_term import LongTerm
from holdfast.contracts.schedules import Schedules
from holdfast.contracts.short_term import States
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.contracts.vectors import Vectors
from holdfast.engines.inmemory.blob import InMemoryBlobs
from holdfast.engines.inmemory.blob_index import InMemoryBlobIndex
from holdfast.engines.inmemory.boards import InMemoryBoards
from holdfast.engines.inmemory.channel import InMemoryChannels
from holdfast.engines.inmemory.checkpoints import InMemoryCheckpoints
from holdfast.engines.inmemory.episodes import InMemoryEpisodes
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.engines.inmemory.items import InMemoryItems
from holdfast.engines.inmemory.keys import InMemoryKeys
from holdfast.engines.inmemory.long_term import InMemoryLongTerm
from holdfast.engines.inmemory.schedules import InMemorySchedules
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.engines.inmemory.transcripts import InMemoryTranscripts
from holdfast.engines.inmemory.vector import InMemoryVectors
from holdfast.testing.harness import front
from holdfast.testing.inmemory import InMemoryHarness


@dataclass(frozen=True)
class Mutant:
    """One broken store, and the contract tests that must fail on it, and no others."""

    name: str
    contract: str
    harness: type[InMemoryHarness]
    breaks: frozenset[str]


MUTANTS: dict[str, Mutant] = {}
FRONTS: dict[str, tuple[type[Any], type[Any]]] = {
    "blob_index": (BlobIndex, InMemoryBlobIndex),
    "blobs": (StoredBlobs, InMemoryBlobs),
    "boards": (Boards, InMemoryBoards),
    "channels": (Channel, InMemoryChannels),
    "checkpoints": (Checkpoints, InMemoryCheckpoints),
    "items": (Items, InMemoryItems),
    "graph": (KnowledgeGraph, InMemoryGraph),
    "episodes": (EpisodicMemory, InMemoryEpisodes),
    "history": (History, InMemoryTranscripts),
    "keys": (KeyStore, InMemoryKeys),
    "long_term": (LongTerm, InMemoryLongTerm),
    "schedules": (Schedules, InMemorySchedules),
    "short_term": (States, InMemoryStates),
    "tasks": (Ledger, InMemoryLedger),
    "vectors": (Vectors, InMemoryVectors),
}
"""What checks the calls of a contract, and what stores for it."""

OPTIONS = {
    "blobs": ("ttl_seconds",),
    "channels": ("name", "retention_seconds"),
    "long_term": ("embedder", "graph", "mode", "language"),
    "vectors": ("embedder",),
}
"""The options of what checks."""


def mutant(contract: str, *breaks: str) -> Callable[[type[Any]], type[Any]]:
    """Register a broken store as an engine that is the in-memory one but for it."""

    def register(broken: type[Any]) -> type[Any]:
        name = broken.__name__
        assert name not in MUTANTS, f"two mutants are called {name}"
        assert broken.__doc__, f"{name} does not say what is broken"
        store: Callable[..., Any] = broken
        if contract in FRONTS:
            # Either what checks is broken, or what stores.
            checks, stores = FRONTS[contract]
            wrong = issubclass(broken, checks)
            own = OPTIONS.get(contract, ())
            store = front(broken, stores, *own) if wrong else front(checks, broken, *own)
        kept: dict[str, Any] = {"stores": {**InMemoryHarness.stores, contract: store}}
        if contract == "memory":
            # It is no store, but what is made of them.
            kept = {"memories": broken}
        harness = type(f"{name}Harness", (InMemoryHarness,), {"name": name, **kept})
        MUTANTS[name] = Mutant(name, contract, harness, frozenset(breaks))
        return broken

    return register
