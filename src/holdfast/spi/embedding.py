"""Embedding of texts: what recall by meaning needs of a model."""

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
    Some models embed a question differently from a passage: ``mode`` names which it is. An embedder
    may raise any error: stores call it through ``embed_texts``. A call that never returns times
    out: ``holdfast.open()`` waits 10 seconds, or the embedder's attribute ``limit_seconds``.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the model, which is stored with its vectors."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of components of a vector."""

    @abstractmethod
    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> Sequence[Sequence[float]]:
        """Return one vector for each text, in order.

        ::

            [vector] = await embedder.embed(["which database?"], mode="query")
        """


async def embed_texts(
    embedder: Embedder, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
) -> list[list[float]]:
    """Embed texts, and check the vectors. Raises ``EngineError`` for any error of the embedder.

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
        # An embedder is third-party code over any driver, and no driver error may leave a contract.
        raise EngineError(engine, f"{type(error).__name__}: {error}") from error
    if len(vectors) != len(texts):
        raise EngineError(engine, f"returned {len(vectors)} vectors for {len(texts)} texts")
    try:
        return [
            check_vector(f"vectors[{at}]", list(vector), dimension=embedder.dimension)
            for at, vector in enumerate(vectors)
        ]
    except InvalidInputError as error:
        raise EngineError(engine, f"returned a vector that cannot be stored: {error}") from error


async def embed_possible(
    embedder: Embedder, texts: Sequence[str]
) -> tuple[list[list[float] | None], str]:
    """Return a vector for each text, ``None`` if it cannot be embedded, and the reason.

    A batch that fails is split in halves and retried, so that a text which the model refuses does
    not affect the others. If the embedder no longer answers, the halves are not retried. ::

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
