"""Text to vectors: what recall by meaning needs from a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from holdfast.values.checks import check_vector
from holdfast.values.errors import (
    EngineError,
    HoldfastError,
    InvalidInputError,
    TimedOutError,
)

EmbeddingMode: TypeAlias = Literal["passage", "query"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of one dimension.

    ``name`` and ``dimension`` are stored with each vector, so that a change of model is noticed.
    Some models embed a question otherwise than a passage: ``mode`` says which it is. An embedder
    may fail as it likes: stores call it through ``embed_texts``. One that never answers is given
    up: ``holdfast.open()`` waits 10 seconds, or as long as its attribute ``limit_seconds`` says.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The model, as it is recorded beside its vectors."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers a vector has."""

    @abstractmethod
    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> Sequence[Sequence[float]]:
        """One vector for each text, in order.

        ::

            [vector] = await embedder.embed(["which database?"], mode="query")
        """


async def embed_texts(
    embedder: Embedder, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
) -> list[list[float]]:
    """The vectors of an embedder, checked; whatever goes wrong in it is an ``EngineError``.

    ::

        [vector] = await embed_texts(embedder, ["which database?"], mode="query")
    """
    if not texts:
        return []
    engine = f"embedder {embedder.name}"
    try:
        vectors = await embedder.embed(list(texts), mode=mode)
    except HoldfastError:
        raise
    except Exception as error:
        # An embedder is anybody's code over anybody's driver, and no driver's error crosses a
        # contract.
        raise EngineError(engine, f"{type(error).__name__}: {error}") from error
    if len(vectors) != len(texts):
        raise EngineError(engine, f"gave {len(vectors)} vectors for {len(texts)} texts")
    try:
        return [
            check_vector(f"vectors[{at}]", list(vector), dimension=embedder.dimension)
            for at, vector in enumerate(vectors)
        ]
    except InvalidInputError as error:
        raise EngineError(engine, f"gave a vector that cannot be kept: {error}") from error


async def embed_possible(
    embedder: Embedder, texts: Sequence[str]
) -> tuple[list[list[float] | None], str]:
    """The vectors of the texts that can be embedded, ``None`` for the others, and a reason.

    A batch that fails is tried in halves, so that a text which the model refuses keeps back itself
    alone. An embedder that answers to nothing any more is not asked again for each half. ::

        vectors, problem = await embed_possible(embedder, texts)
    """
    try:
        return [*await embed_texts(embedder, texts)], ""
    except HoldfastError as error:
        if len(texts) == 1 or (isinstance(error, TimedOutError) and await _hangs(embedder)):
            return [None] * len(texts), str(error)
    half = len(texts) // 2
    first, problem = await embed_possible(embedder, texts[:half])
    second, other = await embed_possible(embedder, texts[half:])
    return first + second, problem or other


async def _hangs(embedder: Embedder) -> bool:
    try:
        await embed_texts(embedder, ["ready?"])
    except HoldfastError as error:
        return isinstance(error, TimedOutError)
    return False
