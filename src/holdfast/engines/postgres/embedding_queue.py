"""The queue of events to embed, on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.indexing import index_batch
from holdfast.engines.postgres.queries import load
from holdfast.spi.embedding_queue import (
    TAKEN_SECONDS,
    EmbeddingBatch,
    EmbeddingQueue,
    EmbeddingStatus,
    EventPosition,
    LogRange,
)
from holdfast.values.codec import decode_json
from holdfast.values.event_text import event_text

_SQL = load("embedding_queue")
AGENTS = 100


class PostgresEmbeddingQueue(EmbeddingQueue):
    """The events of one tenant that wait for a vector. They are indexed for words first.

    ::

        queue = PostgresEmbeddingQueue(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def adopt(self, model: str, dimension: int, *, reads_context: bool = False) -> bool:
        """Set the log's model, and queue all events that have no vector of it."""
        found: bool = await self._engine.fetchval(
            _SQL["adopt"], self._tenant, model, dimension, reads_context, safe=True
        )
        return found

    async def catch_up(self) -> int:
        """Index new events for words, which also queues them for the embedder. Returns how many."""
        total = 0
        while agents := await self._engine.fetch(
            _SQL["unindexed_agents"], self._tenant, AGENTS, safe=True
        ):
            for [agent] in agents:
                total += await self.index(agent)
        return total

    async def index(self, agent: str) -> int:
        """Index the queued events of one agent. Return how many."""

        async def fetch(sql: LiteralString, tenant: str, *args: Any) -> Sequence[Any]:
            return await self._engine.fetch(sql, tenant, *args, safe=True)

        total = 0
        while done := await index_batch(fetch, self._tenant, agent):
            total += done
        return total

    async def take(self, limit: int, *, seconds: float = TAKEN_SECONDS) -> EmbeddingBatch | None:
        """Lease about ``limit`` events to a worker for ``seconds``."""
        rows = await self._engine.fetch(
            _SQL["take"], self._tenant, limit, float(seconds), safe=True
        )
        return _batch(rows, limit) if rows else None

    async def tail(self, agents: Sequence[str], limit: int) -> EmbeddingBatch:
        """Return waiting events of agents, leased or not, up to ``limit`` per range."""
        rows = await self._engine.fetch(_SQL["tail"], self._tenant, agents, limit, safe=True)
        return _batch(rows, limit)

    async def keep(
        self,
        batch: EmbeddingBatch,
        vectors: Sequence[list[float] | None],
        *,
        model: str,
        dimension: int,
    ) -> bool:
        """Store the vectors of a batch; ``None`` is an event that the model refused."""
        numbers = batch.numbers or [None] * len(batch.positions)
        made = [
            (position, number, vector)
            for position, number, vector in zip(batch.positions, numbers, vectors, strict=True)
            if vector is not None
        ]
        pairs = zip(batch.positions, vectors, strict=True)
        refused = [position for position, vector in pairs if vector is None]
        kept: bool = await self._engine.fetchval(
            _SQL["keep"],
            *(self._tenant, model, dimension),
            *([getattr(one, slot) for one in batch.ranges] for slot in LogRange.__slots__),
            *([getattr(one, slot) for one, _, _ in made] for slot in EventPosition.__slots__),
            [number for _, number, _ in made],
            [number for _, _, vector in made for number in vector],
            *([getattr(one, slot) for one in refused] for slot in EventPosition.__slots__),
            safe=True,
        )
        return kept

    async def give_back(self, batch: EmbeddingBatch) -> None:
        """Return a batch to the queue, for another worker."""
        slots = ("agent", "session_key", "epoch", "first_seq")
        columns = ([getattr(one, slot) for one in batch.ranges] for slot in slots)
        await self._engine.fetch(_SQL["give_back"], self._tenant, *columns, safe=True)

    async def retry_refused(self) -> int:
        """Queue the events again that the model refused."""
        found: int = await self._engine.fetchval(_SQL["retry"], self._tenant, safe=False)
        return found

    async def status(self) -> EmbeddingStatus:
        """Return how far the embedder is behind the log."""
        [row] = await self._engine.fetch(_SQL["status"], self._tenant, safe=True)
        model, dimension, *counts = row
        return EmbeddingStatus(model or "", dimension or 0, *counts)


async def tenants_waiting(engine: Postgres, model: str) -> list[str]:
    """Return the tenants whose log uses a model and has events that wait for a vector.

    ::

        tenants = await tenants_waiting(engine, "wordllama-256")
    """
    rows = await engine.fetch_across(_SQL["tenants_waiting"], model, safe=True)
    return [row[0] for row in rows]


def _batch(rows: Sequence[Any], limit: int) -> EmbeddingBatch:
    """Return a batch from rows of ranges and events.

    A range with ``limit`` events may have more.
    """
    events: dict[EventPosition, tuple[str, str, int | None]] = {}
    ends: dict[tuple[str, int, int, int], list[int]] = {}
    for agent, key, epoch, first, last, seq, kind, body, number, said_type, said_body in rows:
        seen = ends.setdefault((agent, key, epoch, first), [last, 0, 0])
        if seq is not None:
            seen[1:] = [seen[1] + 1, seq]
            # Ranges may overlap; an event is embedded once.
            context = event_text(said_type, decode_json(said_body)) if said_type else ""
            text = event_text(kind, decode_json(body))
            events[EventPosition(key, epoch, seq)] = (text, context, number)
    return EmbeddingBatch(
        [
            LogRange(*position, done=seq if count >= limit else last)
            for position, (last, count, seq) in ends.items()
        ],
        list(events),
        [text for text, _, _ in events.values()],
        [context for _, context, _ in events.values()],
        [number for _, _, number in events.values()],
    )
