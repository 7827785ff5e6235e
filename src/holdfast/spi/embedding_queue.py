"""What waits to be embedded: the log goes first, and the embedder follows it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.spi.embedding import Embedder, embed_possible, embed_texts
from holdfast.values.errors import HoldfastError

TAKEN_SECONDS = 120.0
"""How long a worker has what it took; then others may take it."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """A part of a session's log that is dealt with up to ``done``.

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
    """Where an event stands.

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


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """How far the embedder is behind the log.

    >>> EmbeddingStatus().waiting
    0
    """

    model: str = ""
    """The model that the log is embedded by; empty before the first."""

    dimension: int = 0
    embedded: int = 0
    outdated: int = 0
    """Events that still have a vector of an earlier model, which recall leaves out."""

    given: int = 0
    """Events whose writers gave their vectors."""

    waiting: int = 0
    """At most so many events wait for a vector."""

    refused: int = 0
    """Events that the model refused while it took others."""


class EmbeddingQueue(Protocol):
    """What waits to be embedded, of one tenant; any number of workers may share it."""

    @abstractmethod
    async def adopt(self, model: str, dimension: int) -> bool:
        """Make a model the log's: all that has no vector of it waits for one. Whether it is new.

        ::

            await queue.adopt(embedder.name, embedder.dimension)
        """

    @abstractmethod
    async def catch_up(self) -> int:
        """Take in what was appended since; how many ranges.

        ::

            await queue.catch_up()
        """

    @abstractmethod
    async def take(self, limit: int, *, seconds: float = TAKEN_SECONDS) -> EmbeddingBatch | None:
        """About ``limit`` events, for a worker that has them for a while; ``None`` when none wait.

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
        """Keep what was embedded; ``None`` is an event that the model refused.

        Whether it was kept: not when the log has another model by now. ::

            await queue.keep(batch, vectors, model=embedder.name, dimension=embedder.dimension)
        """

    @abstractmethod
    async def give_back(self, batch: EmbeddingBatch) -> None:
        """Let a batch that was taken wait for somebody else.

        ::

            await queue.give_back(batch)
        """

    @abstractmethod
    async def retry_refused(self) -> int:
        """Let what the model refused wait once more; how many events.

        ::

            await queue.retry_refused()
        """

    @abstractmethod
    async def status(self) -> EmbeddingStatus:
        """How far the embedder is behind the log.

        ::

            print((await queue.status()).waiting)
        """


async def embed_batch(
    queue: EmbeddingQueue, embedder: Embedder, batch: EmbeddingBatch
) -> tuple[bool, str]:
    """Embed a batch and keep it; whether it is done, and what the embedder said against it.

    A text that the model refuses keeps back itself alone. An embedder that answers to nothing is
    down: then the batch goes on waiting. ::

        done, problem = await embed_batch(queue, embedder, batch)
    """
    vectors: list[list[float] | None] = []
    problem = ""
    if batch.texts:
        vectors, problem = await embed_possible(embedder, batch.texts)
    if batch.texts and not any(vectors):
        try:
            await embed_texts(embedder, ["ready?"])
        except HoldfastError as error:
            await queue.give_back(batch)
            return False, str(error)
    kept = await queue.keep(batch, vectors, model=embedder.name, dimension=embedder.dimension)
    return kept, problem if kept else "the log is embedded by another model by now"
