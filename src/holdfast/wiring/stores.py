"""The stores of one tenant, put together from engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.kernel.storage.blob import BlobStore
from holdfast.kernel.storage.channel import Channel
from holdfast.kernel.storage.episodes import EpisodicMemory
from holdfast.kernel.storage.graph import GraphStore
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.ledger import TaskLedger
from holdfast.kernel.storage.memory import LongTermMemory, ShortTermMemory
from holdfast.kernel.storage.tasks import TaskStore
from holdfast.kernel.storage.vector import VectorStore


@dataclass(frozen=True, slots=True)
class Stores:
    """One store for each contract, all of one tenant."""

    blobs: BlobStore
    history: HistoryProvider
    vectors: VectorStore
    graph: GraphStore
    short_term: ShortTermMemory
    long_term: LongTermMemory
    boards: TaskStore
    tasks: TaskLedger
    episodes: EpisodicMemory
    channel: Callable[[str], Channel]
