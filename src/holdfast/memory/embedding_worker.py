"""The worker that embeds new events of the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.spi.embedding import Embedder, reads_context
from holdfast.spi.embedding_queue import EmbeddingBatch, EmbeddingQueue, embed_batch
from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.embedding")
BATCH = 256
LONGEST_PAUSE_SECONDS = 30.0
GIVE_BACK_SECONDS = 2.0
"""How many seconds a stopped worker waits to return its batch to the queue."""


class EmbeddingWorker:
    """Embeds queued events in batches. Several workers may run, and a crash loses no event.

    A cancelled worker returns its batch to the queue. The batch of a worker that died is queued
    again after a while. If the embedder is down, nothing is lost: appends continue, and the worker
    continues when the embedder is back. ::

        worker = EmbeddingWorker(queue, embedder)
        await worker.adopt()
        await worker.drain()
    """

    def __init__(self, queue: EmbeddingQueue, embedder: Embedder) -> None:
        self._queue = queue
        self._embedder = embedder

    async def adopt(self) -> bool:
        """Make the embedder's model that of the log. Returns whether the log had another or none.

        If so, all events are embedded again. Meanwhile recall uses words and the vectors that
        exist. ::

            await worker.adopt()
        """
        embedder = self._embedder
        return await self._queue.adopt(
            embedder.name, embedder.dimension, reads_context=reads_context(embedder)
        )

    async def drain(self, progress: Callable[[int], None] | None = None) -> tuple[int, str]:
        """Embed events until the queue is empty.

        Returns how many were embedded, and why it ended early, or ``""``.

        ::

            done, problem = await worker.drain()
        """
        await self._queue.catch_up()
        total = 0
        while batch := await self._take():
            try:
                done, problem = await embed_batch(self._queue, self._embedder, batch)
            except asyncio.CancelledError:
                await self._give_back(batch)
                raise
            if not done:
                return total, problem
            if problem:
                _log.warning("the embedder %s refused events: %s", self._embedder.name, problem)
            total += len(batch.texts)
            if progress is not None:
                progress(len(batch.texts))
        return total, ""

    async def _take(self) -> EmbeddingBatch | None:
        """Take a batch from the queue. If this is cancelled before the reply, return the batch."""
        taking = asyncio.ensure_future(self._queue.take(BATCH))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.wait([taking], timeout=GIVE_BACK_SECONDS)
            taking.cancel()
            [taken] = await asyncio.gather(taking, return_exceptions=True)
            if isinstance(taken, EmbeddingBatch):
                await self._give_back(taken)
            raise

    async def _give_back(self, batch: EmbeddingBatch) -> None:
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await self._queue.give_back(batch)
        except (HoldfastError, TimeoutError) as error:
            _log.info("a batch waits until its lease has expired: %s", error)


async def follow(
    queue: Callable[[str], EmbeddingQueue],
    waiting: Callable[[str], Awaitable[list[str]]],
    embedder: Embedder,
    *,
    home: str,
    poll_seconds: float = 1.0,
) -> None:
    """Embed the queued events of all tenants with the embedder's model, until cancelled.

    First, the tenant ``home`` gets the embedder's model, if it has another. After an outage the
    function retries with growing pauses. ::

        task = asyncio.create_task(follow(queue, waiting, embedder, home="acme"))
    """
    pause = poll_seconds
    adopted = False
    while True:
        problem = ""
        try:
            if not adopted:
                await EmbeddingWorker(queue(home), embedder).adopt()
                adopted = True
            for tenant in await waiting(embedder.name):
                _, problem = await EmbeddingWorker(queue(tenant), embedder).drain()
        except HoldfastError as error:
            problem = str(error)
        if problem:
            _log.warning("events wait to be embedded: %s", problem)
        pause = min(LONGEST_PAUSE_SECONDS, pause * 2) if problem else poll_seconds
        await asyncio.sleep(pause)
