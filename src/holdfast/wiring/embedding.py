"""The embedding queue of one tenant's log, for operator commands."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.memory.embedding_worker import EmbeddingWorker
from holdfast.spi.embedding import Embedder
from holdfast.spi.embedding_queue import EmbeddingQueue
from holdfast.values.checks import check_id
from holdfast.values.errors import NotSupportedError
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import INMEMORY, engine_of_settings, load
from holdfast.wiring.request import OpenRequest, with_embedder, with_limit
from holdfast.wiring.settings import Settings


@dataclasses.dataclass(frozen=True, slots=True)
class Embedding:
    """The queue of a tenant's events that have no embedding, and the configured embedder."""

    queue: EmbeddingQueue
    embedder: Embedder | None

    @property
    def worker(self) -> EmbeddingWorker | None:
        """Return a worker for the queue; ``None`` if no embedder is configured."""
        return EmbeddingWorker(self.queue, self.embedder) if self.embedder else None

    @staticmethod
    @asynccontextmanager
    async def open(settings: Settings, tenant: str = "") -> AsyncIterator[Embedding]:
        """Connect to the configured engines; no worker runs in the background.

        ::

            async with Embedding.open(settings, "acme") as embedding:
                print(await embedding.queue.status())
        """
        name = check_id("tenant", tenant or settings.tenant)
        spec = engine_of_settings(settings) or INMEMORY
        request = await with_embedder(
            OpenRequest(settings.database_url, "", "", settings, background=False)
        )
        found: Connections = await load(spec).connect(request)
        try:
            if found.embedding is None:
                raise NotSupportedError(
                    spec.name, "embedding in the background", why="set DATABASE_URL to a Postgres"
                )
            limited = with_limit(request).embedder
            yield Embedding(found.embedding.queue(name), limited)
        finally:
            await found.close()
            close = getattr(request.embedder, "aclose", None)
            if close is not None:
                await close()
