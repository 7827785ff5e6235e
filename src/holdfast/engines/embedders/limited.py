"""A time limit for any embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from holdfast.spi.embedding import (
    Embedder,
    EmbeddingMode,
    Turn,
    TurnEmbedder,
    Vectors,
    lexical_weight,
    reads_context,
)
from holdfast.values.errors import TimedOutError

LIMIT_SECONDS = 10.0
"""The time limit for one text, unless the embedder has its own ``limit_seconds``."""

MORE_SECONDS_PER_TEXT = 0.5
"""Added to the limit for each further text of a call: a model without a GPU is that slow."""


class LimitedEmbedder(TurnEmbedder):
    """Wraps an embedder and raises ``TimedOutError`` when it takes too long.

    ::

        embedder = LimitedEmbedder(StaticEmbedder())
    """

    def __init__(self, inner: Embedder, *, limit_seconds: float | None = None) -> None:
        self._inner = inner
        given = getattr(inner, "limit_seconds", LIMIT_SECONDS)
        self.limit_seconds = float(given if limit_seconds is None else limit_seconds)

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._inner.dimension

    @property
    def reads_context(self) -> bool:
        """Whether the wrapped embedder also reads the messages before a text."""
        return reads_context(self._inner)

    @property
    def lexical_weight(self) -> float:
        """The weight of the search by words in the combined score of recall, from 0 to 1."""
        return lexical_weight(self._inner)

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> Sequence[Sequence[float]]:
        """Return the wrapped embedder's vectors, or raise ``TimedOutError``."""
        return await self._in_time(self._inner.embed(texts, mode=mode), len(texts))

    async def embed_turns(self, turns: Sequence[Turn]) -> Sequence[Sequence[float]]:
        """Return the wrapped embedder's vectors, or raise ``TimedOutError``."""
        if not isinstance(self._inner, TurnEmbedder):
            return await self.embed([text for _, text in turns])
        return await self._in_time(self._inner.embed_turns(turns), len(turns))

    async def _in_time(self, vectors: Awaitable[Vectors], count: int) -> Vectors:
        limit = self.limit_seconds + MORE_SECONDS_PER_TEXT * (count - 1)
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                return await vectors
        except TimeoutError as error:
            # A TimeoutError raised by the model's own code passes through unchanged.
            if not clock.expired():
                raise
            raise TimedOutError(
                f"embedder {self.name}",
                f"no answer in {limit:g} s: is it up? Its limit_seconds may be raised",
            ) from error
