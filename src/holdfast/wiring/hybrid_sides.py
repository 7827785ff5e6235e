"""What the durable engine provides to the hybrid memory, and the hybrid as operators see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.spi.archive.storage import ArchiveStorage
from holdfast.spi.episodes import EpisodeStorage
from holdfast.spi.hybrid.durable_log import DurableLog, DurableQueue
from holdfast.spi.hybrid.hot_log import HotQueue
from holdfast.spi.hybrid.state_snapshots import DurableStates, FallbackWrites
from holdfast.spi.transcripts import Transcripts


@dataclass(frozen=True, slots=True)
class DurableSide:
    """The stores and queues that a durable engine provides."""

    log: Callable[[str], DurableLog]
    transcripts: Callable[[str], Transcripts]
    episodes: Callable[[str], EpisodeStorage]
    queue: DurableQueue
    states: DurableStates
    fallback_writes: FallbackWrites
    archive: Callable[[str], ArchiveStorage]
    distributed: str = ""
    """How the database is divided over several nodes; ``""`` if it is not."""


@dataclass(frozen=True, slots=True)
class HybridSide:
    """An opened hybrid for operators: its queues and its consolidator."""

    hot: HotQueue
    durable: DurableQueue
    consolidator: Consolidator
    window_seconds: float

    async def samples(self) -> list[tuple[str, float]]:
        """Return every metric by name, for a scrape; ``HELP`` of ``memory.metrics`` explains them.

        ::

            for name, value in await state.ops.hybrid.samples():
                print(name, value)
        """
        stats = await self.hot.stats()
        return list(self.consolidator.metrics.samples(stats, ttl_seconds=self.window_seconds))
