"""The in-memory engine under test, and an example of a harness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

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
from holdfast.contracts.wakes import Wakes
from holdfast.engines.inmemory.archive import InMemoryArchive
from holdfast.engines.inmemory.blob import BlobBytes, InMemoryBlobs
from holdfast.engines.inmemory.blob_index import InMemoryBlobIndex
from holdfast.engines.inmemory.boards import InMemoryBoards
from holdfast.engines.inmemory.channel import InMemoryChannels
from holdfast.engines.inmemory.checkpoints import InMemoryCheckpoints
from holdfast.engines.inmemory.engine import InMemory
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
from holdfast.engines.inmemory.wake import InMemoryWake
from holdfast.testing.harness import Harness, front
from holdfast.values.clock import ManualClock


class InMemoryHarness(Harness):
    """The in-memory engine on a clock that the test moves."""

    name = "inmemory"
    stores: ClassVar[dict[str, Callable[..., Any]]] = {
        "channels": front(Channel, InMemoryChannels, "name", "retention_seconds"),
        "blob_index": front(BlobIndex, InMemoryBlobIndex),
        "blobs": front(StoredBlobs, InMemoryBlobs, "ttl_seconds"),
        "boards": front(Boards, InMemoryBoards),
        "checkpoints": front(Checkpoints, InMemoryCheckpoints),
        "items": front(Items, InMemoryItems),
        "short_term": front(States, InMemoryStates, "ttl_seconds", "kept_versions"),
        "episodes": front(EpisodicMemory, InMemoryEpisodes),
        "history": front(History, InMemoryTranscripts),
        "keys": front(KeyStore, InMemoryKeys),
        "schedules": front(Schedules, InMemorySchedules),
        "tasks": front(Ledger, InMemoryLedger),
        "vectors": front(Vectors, InMemoryVectors, "embedder"),
        "graph": front(KnowledgeGraph, InMemoryGraph),
        "long_term": front(LongTerm, InMemoryLongTerm, "embedder", "graph", "mode", "language"),
    }
    contracts = frozenset({*stores, "memory"})
    state_versions = 3

    @classmethod
    def reference(cls) -> type[Harness]:
        """A second, deliberately naive model: the in-memory engine is everyone else's reference."""
        from holdfast.testing.models.harness import NaiveHarness  # noqa: PLC0415 - loaded on demand

        return NaiveHarness

    async def open(self) -> None:
        """Start with nothing stored."""
        self.clock = ManualClock()
        self.engine = InMemory(clock=self.clock)

    async def close(self) -> None:
        """Nothing to let go of."""

    async def reopen(self) -> None:
        """The data is the engine's and stores are views on it, so new views are a new start."""

    async def elapse(self, seconds: float) -> None:
        """Move the clock."""
        self.clock.advance(seconds)

    async def turn_back(self, seconds: float) -> None:
        """Move the clock back."""
        self.clock.turn_back(seconds)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A new view on the engine's data."""
        return self.stores[contract](self.engine, tenant=tenant, **options)

    def wakes(self, *, tenant: str = "default") -> Wakes:
        """How sessions are found."""
        return Wakes(InMemoryWake(self.engine, tenant=tenant))

    def archive(self, *, tenant: str = "default") -> InMemoryArchive:
        """What dumps and loads the data of a tenant."""
        return InMemoryArchive(self.engine, tenant=tenant)

    async def raw(self, contract: str) -> list[str | bytes]:  # noqa: ARG002 - one dump serves all
        """All that the engine holds, for every tenant and contract; empty tables are nothing."""
        tables = self.engine.tables()
        return sorted(repr(data) for data in tables if repr(data) != repr(type(data)()))

    async def damage_blob(self, ref: str, *, truncate: bool) -> None:
        """Cut off or flip the last byte."""
        for table in self.engine.tables():
            if isinstance(table, BlobBytes) and ref in table.objects:
                data = table.objects[ref]
                table.objects[ref] = data[:-1] + (b"" if truncate else bytes([data[-1] ^ 1]))
