"""Embedding of texts: what recall by meaning needs of a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from holdfast.values.checks import check_vector
from holdfast.values.errors import (
    EngineError,
    HoldfastError,
    InvalidInputError,
    TimedOutError,
)
from holdfast.values.recall_rules import LEXICAL_WEIGHT

EmbeddingMode: TypeAlias = Literal["passage", "query"]
Turn: TypeAlias = tuple[str, str]
"""A pair: the text just before in the session, empty if there is none; and the text to embed."""

Vectors: TypeAlias = Sequence[Sequence[float]]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of one dimension.

    ``name`` and ``dimension`` are stored with each vector, so that a change of model is noticed.
    Some models embed a question differently from a passage: ``mode`` names which it is. An embedder
    may raise any error: stores call it through ``embed_texts``. A call that never returns times
    out: ``holdfast.open()`` waits 10 seconds, or the embedder's attribute ``limit_seconds``. An
    optional attribute ``lexical_weight`` from 0 to 1 is the share of the words in a fused score of
    recall; without it, the share is 0.4. A weak model needs a larger one.
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


@runtime_checkable
class TurnEmbedder(Embedder, Protocol):
    """An embedder that reads what was said before a text, so that "yes, two" is understood.

    The method is optional: events are embedded by ``embed`` if an embedder does not have it, or if
    it has an attribute ``reads_context`` that is false.
    """

    @abstractmethod
    async def embed_turns(self, turns: Sequence[Turn]) -> Sequence[Sequence[float]]:
        """Return one vector for each pair of a context and a text, in order.

        The vector is that of the text; the context is only read. ::

            [vector] = await embedder.embed_turns([("Ana: Any kittens?", "Ben: Yes, two.")])
        """


def reads_context(embedder: Embedder) -> bool:
    """Return whether the vector of an event depends on what was said before it.

    ::

        if reads_context(embedder):
            await embed_again(what_follows)
    """
    return isinstance(embedder, TurnEmbedder) and bool(getattr(embedder, "reads_context", True))


def lexical_weight(embedder: Embedder) -> float:
    """Return the weight of words in a fused score. Raises ``InvalidInputError`` if it is invalid.

    ::

        ranked = rank(candidates, lexical_weight=lexical_weight(embedder))
    """
    weight: object = getattr(embedder, "lexical_weight", LEXICAL_WEIGHT)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InvalidInputError(
            "embedder.lexical_weight", f"must be a number from 0 to 1, not {weight!r}"
        )
    return float(weight)


async def embed_texts(
    embedder: Embedder, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
) -> list[list[float]]:
    """Embed texts, and check the vectors. Raises ``EngineError`` for any error of the embedder.

    ::

        [vector] = await embed_texts(embedder, ["which database?"], mode="query")
    """
    if not texts:
        return []
    return await _checked(embedder, lambda: embedder.embed(list(texts), mode=mode), len(texts))


async def embed_turns(embedder: Embedder, turns: Sequence[Turn]) -> list[list[float]]:
    """Embed texts with their contexts, or the texts alone if the embedder reads no context.

    Checks and raises as ``embed_texts`` does. ::

        [vector] = await embed_turns(embedder, [("Ana: Any kittens?", "Ben: Yes, two.")])
    """
    if not isinstance(embedder, TurnEmbedder) or not reads_context(embedder):
        return await embed_texts(embedder, [text for _, text in turns])
    if not turns:
        return []
    return await _checked(embedder, lambda: embedder.embed_turns(list(turns)), len(turns))


async def _checked(
    embedder: Embedder, embed: Callable[[], Awaitable[Vectors]], count: int
) -> list[list[float]]:
    engine = f"embedder {embedder.name}"
    try:
        vectors = await embed()
    except HoldfastError:
        raise
    except Exception as error:
        # An embedder is third-party code over any driver, and no driver error may leave a contract.
        raise EngineError(engine, f"{type(error).__name__}: {error}") from error
    if len(vectors) != count:
        raise EngineError(engine, f"returned {len(vectors)} vectors for {count} texts")
    try:
        return [
            check_vector(f"vectors[{at}]", list(vector), dimension=embedder.dimension)
            for at, vector in enumerate(vectors)
        ]
    except InvalidInputError as error:
        raise EngineError(engine, f"returned a vector that cannot be stored: {error}") from error


async def embed_possible(
    embedder: Embedder, turns: Sequence[Turn]
) -> tuple[list[list[float] | None], str]:
    """Return a vector, or ``None`` if embedding failed, for each turn; and the error, or ``""``.

    A batch that fails is split in halves and retried, so that a text which the model refuses does
    not affect the others. If the embedder no longer answers, the halves are not retried. ::

        vectors, problem = await embed_possible(embedder, [("", text) for text in texts])
    """
    try:
        return [*await embed_turns(embedder, turns)], ""
    except HoldfastError as error:
        if len(turns) == 1 or (isinstance(error, TimedOutError) and await _hangs(embedder)):
            return [None] * len(turns), str(error)
    half = len(turns) // 2
    first, problem = await embed_possible(embedder, turns[:half])
    second, other = await embed_possible(embedder, turns[half:])
    return first + second, problem or other


async def _hangs(embedder: Embedder) -> bool:
    try:
        await embed_texts(embedder, ["ready?"])
    except HoldfastError as error:
        return isinstance(error, TimedOutError)
    return False
