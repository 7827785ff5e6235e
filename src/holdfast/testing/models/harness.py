"""The naive models as an engine, for the state machines to compare the in-memory engine with.

A model says what a contract means in the plainest way: lists, loops and copies, no index, no cache,
no shared code with the engine. It need not check its input: state machines send good input.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from holdfast.testing.harness import Harness
from holdfast.testing.models.agent_memory import NaiveMemory
from holdfast.testing.models.blob import NaiveBlobs
from holdfast.testing.models.blob_index import NaiveBlobIndex
from holdfast.testing.models.boards import NaiveBoards
from holdfast.testing.models.channel import NaiveChannel
from holdfast.testing.models.checkpoints import NaiveCheckpoints
from holdfast.testing.models.episodes import NaiveEpisodes
from holdfast.testing.models.graph import NaiveGraph
from holdfast.testing.models.history import NaiveHistory
from holdfast.testing.models.items import NaiveItems
from holdfast.testing.models.ledger import NaiveLedger
from holdfast.testing.models.long_term import NaiveLongTerm
from holdfast.testing.models.shared import Shared
from holdfast.testing.models.short_term import NaiveShortTerm
from holdfast.testing.models.vector import NaiveVectors


class NaiveHarness(Harness):
    """Deliberately naive models of the contracts."""

    name = "naive"
    stores: ClassVar[dict[str, type[Any]]] = {
        "channels": NaiveChannel,
        "blob_index": NaiveBlobIndex,
        "blobs": NaiveBlobs,
        "boards": NaiveBoards,
        "checkpoints": NaiveCheckpoints,
        "episodes": NaiveEpisodes,
        "history": NaiveHistory,
        "items": NaiveItems,
        "short_term": NaiveShortTerm,
        "tasks": NaiveLedger,
        "vectors": NaiveVectors,
        "graph": NaiveGraph,
        "long_term": NaiveLongTerm,
    }
    contracts = frozenset({*stores, "memory"})
    state_versions = 3

    async def open(self) -> None:
        """Start with nothing stored."""
        self.shared = Shared()

    async def close(self) -> None:
        """Nothing to let go of."""

    async def reopen(self) -> None:
        """The rows are shared, so new models are a new start."""

    async def elapse(self, seconds: float) -> None:
        """Move the clock."""
        self.shared.now += timedelta(seconds=seconds)

    def memory(
        self,
        agent: str,
        *,
        session_id: str | None = None,
        tenant: str = "default",
        **options: Any,
    ) -> Any:
        """A new model over the shared rows; it has no options."""
        assert not options
        return NaiveMemory(self.shared, agent, session_id=session_id, tenant=tenant)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A new model over the shared rows."""
        return self.stores[contract](self.shared, tenant=tenant, **options)
