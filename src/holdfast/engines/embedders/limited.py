"""A time limit for any embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.values.errors import TimedOutError

LIMIT_SECONDS = 10.0
"""The time limit for one text, unless the embedder has its own ``limit_seconds``."""

MORE_SECONDS_PER_TEXT = 0.5
"""Added to the limit for each further text of a call: a model without a GPU is that slow."""


class LimitedEmbedder(Embedder):
    """Wraps an embedder and raises ``TimedOutError`` when it takes too long.

    ::

        embedder = LimitedEmbedder(StaticEmbedder())
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

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

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> Sequence[Sequence[float]]:
        """Return the wrapped embedder's vectors, or raise ``TimedOutError``."""
        limit = float(getattr(self._inner, "limit_seconds", LIMIT_SECONDS))
        limit += MORE_SECONDS_PER_TEXT * (len(texts) - 1)
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                return await self._inner.embed(texts, mode=mode)
        except TimeoutError as error:
            # A TimeoutError raised by the model's own code passes through unchanged.
            if not clock.expired():
                raise
            raise TimedOutError(
                f"embedder {self.name}",
                f"no answer in {limit:g} s: is it up? Its limit_seconds may be raised",
            ) from error
