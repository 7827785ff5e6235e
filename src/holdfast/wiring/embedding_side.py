"""The embedder of an opened ``State``, and its background worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.memory.embedding_worker import EmbeddingWorker, follow
from holdfast.spi.embedding import Embedder
from holdfast.spi.embedding_queue import EmbeddingQueue


@dataclass(slots=True)
class EmbeddingSide:
    """The embedding queues by tenant, and the background worker that processes them."""

    queue: Callable[[str], EmbeddingQueue]
    waiting: Callable[[str], Awaitable[list[str]]]
    """Returns the tenants whose log is embedded by a model and has events without embedding."""

    embedder: Embedder | None = None
    _task: asyncio.Task[None] | None = None

    def worker(self, tenant: str, embedder: Embedder) -> EmbeddingWorker:
        """Return a worker that embeds a tenant's log."""
        return EmbeddingWorker(self.queue(tenant), embedder)

    def start(self, tenant: str) -> None:
        """Embed in the background: this tenant's log, and the logs that use the same model."""
        if self.embedder is not None:
            self._task = asyncio.create_task(
                follow(self.queue, self.waiting, self.embedder, home=tenant)
            )

    async def stop(self) -> None:
        """Stop the background worker; events that it has not embedded stay in the queue."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
