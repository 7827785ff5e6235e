"""The queue of events without a vector: an append does not wait for the embedder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.spi.embedding import Embedder, Turn, embed_possible, embed_texts
from holdfast.values.errors import HoldfastError

TAKEN_SECONDS = 120.0
"""How long a worker holds a batch; after that, others may take it."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """A range of a session's log; its events up to ``done`` are processed.

    >>> LogRange("a1", session_key=1, epoch=1, first_seq=1, done=9).done
    9
    """

    agent: str
    session_key: int
    epoch: int
    first_seq: int
    done: int


@dataclass(frozen=True, slots=True)
class EventPosition:
    """The position of an event.

    >>> EventPosition(session_key=1, epoch=1, seq=7).seq
    7
    """

    session_key: int
    epoch: int
    seq: int


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """Some events that need a vector, and the ranges of the queue that they come from.

    >>> EmbeddingBatch().texts
    []
    """

    ranges: list[LogRange] = field(default_factory=list)
    positions: list[EventPosition] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    """What was said before each text in its session; may be left out if the embedder reads none."""

    numbers: list[int | None] = field(default_factory=list)
    """The engine's own numbers of the events, to detect that the text before them has changed."""

    @property
    def turns(self) -> list[Turn]:
        """Each text with its context.

        >>> EmbeddingBatch(texts=["Ben: Two."], contexts=["Ana: How many?"]).turns
        [('Ana: How many?', 'Ben: Two.')]
        """
        contexts = self.contexts or [""] * len(self.texts)
        return list(zip(contexts, self.texts, strict=True))


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """The backlog of the embedder.

    >>> EmbeddingStatus().waiting
    0
    """

    model: str = ""
    """The model of the log's vectors; empty before the first."""

    dimension: int = 0
    embedded: int = 0
    outdated: int = 0
    """Events that still have a vector of an earlier model, which recall ignores."""

    given: int = 0
    """Events whose vectors came from their writers."""

    waiting: int = 0
    """An upper bound on the number of events that wait for a vector."""

    refused: int = 0
    """Events that the model refused while it accepted others."""


class EmbeddingQueue(Protocol):
    """The embedding queue of one tenant; any number of workers may share it."""

    @abstractmethod
    async def adopt(self, model: str, dimension: int, *, reads_context: bool = False) -> bool:
        """Set the log's model, and queue the events without its vector. Returns whether it is new.

        ``reads_context``: a vector also depends on the text before the event, and is computed again
        when that text is deleted.

        ::

            await queue.adopt(embedder.name, embedder.dimension)
        """

    @abstractmethod
    async def catch_up(self) -> int:
        """Queue the events appended since the last call. Returns how many ranges were queued.

        ::

            await queue.catch_up()
        """

    @abstractmethod
    async def take(self, limit: int, *, seconds: float = TAKEN_SECONDS) -> EmbeddingBatch | None:
        """Take about ``limit`` events for ``seconds``. Returns ``None`` if none wait.

        ::

            batch = await queue.take(256)
        """

    @abstractmethod
    async def keep(
        self,
        batch: EmbeddingBatch,
        vectors: Sequence[list[float] | None],
        *,
        model: str,
        dimension: int,
    ) -> bool:
        """Store the vectors of a batch; ``None`` is an event that the model refused.

        Returns whether they were stored: they are not if the log has another model by now. ::

            await queue.keep(batch, vectors, model=embedder.name, dimension=embedder.dimension)
        """

    @abstractmethod
    async def give_back(self, batch: EmbeddingBatch) -> None:
        """Put a batch back into the queue, for any worker.

        ::

            await queue.give_back(batch)
        """

    @abstractmethod
    async def retry_refused(self) -> int:
        """Queue the events again that the model refused. Returns how many.

        ::

            await queue.retry_refused()
        """

    @abstractmethod
    async def status(self) -> EmbeddingStatus:
        """Return the backlog of the embedder.

        ::

            print((await queue.status()).waiting)
        """


async def embed_batch(
    queue: EmbeddingQueue, embedder: Embedder, batch: EmbeddingBatch
) -> tuple[bool, str]:
    """Embed a batch and store its vectors. Returns whether it is done, and the embedder's error.

    A text that the model refuses does not affect the others. If the embedder does not answer at
    all, the batch is put back into the queue. ::

        done, problem = await embed_batch(queue, embedder, batch)
    """
    vectors: list[list[float] | None] = []
    problem = ""
    if batch.texts:
        vectors, problem = await embed_possible(embedder, batch.turns)
    if batch.texts and not any(vectors):
        try:
            await embed_texts(embedder, ["ready?"])
        except HoldfastError as error:
            await queue.give_back(batch)
            return False, str(error)
    kept = await queue.keep(batch, vectors, model=embedder.name, dimension=embedder.dimension)
    return kept, problem if kept else "the log is embedded by another model by now"
