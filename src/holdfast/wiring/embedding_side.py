"""The embedder of an opened ``State``, and its worker in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.memory.embedding_worker import EmbeddingWorker, follow
from holdfast.spi.embedding import Embedder
from holdfast.spi.embedding_queue import EmbeddingQueue


@dataclass(slots=True)
class EmbeddingSide:
    """What waits to be embedded, by tenant, and who embeds it."""

    queue: Callable[[str], EmbeddingQueue]
    waiting: Callable[[str], Awaitable[list[str]]]
    """The tenants whose log is embedded by a model, and that have something waiting."""

    embedder: Embedder | None = None
    _task: asyncio.Task[None] | None = None

    def worker(self, tenant: str, embedder: Embedder) -> EmbeddingWorker:
        """Who embeds a tenant's log."""
        return EmbeddingWorker(self.queue(tenant), embedder)

    def start(self, tenant: str) -> None:
        """Follow the logs in the background: a tenant's, and all others of the same model."""
        if self.embedder is not None:
            self._task = asyncio.create_task(
                follow(self.queue, self.waiting, self.embedder, home=tenant)
            )

    async def stop(self) -> None:
        """End it; what it was about to embed goes on waiting."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
