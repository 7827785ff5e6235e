"""An embedder that is given up when it does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.values.errors import TimedOutError

LIMIT_SECONDS = 10.0
"""How long an embedder may take over one text, unless its own ``limit_seconds`` says otherwise."""

MORE_SECONDS_PER_TEXT = 0.5
"""How much longer for each further text of a call: a model without a GPU is that slow."""


class LimitedEmbedder(Embedder):
    """Another embedder, and a ``TimedOutError`` where it takes too long.

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
        """The other's vectors, if they come in time."""
        limit = float(getattr(self._inner, "limit_seconds", LIMIT_SECONDS))
        limit += MORE_SECONDS_PER_TEXT * (len(texts) - 1)
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                return await self._inner.embed(texts, mode=mode)
        except TimeoutError as error:
            # What the model's own code timed out on is its own error.
            if not clock.expired():
                raise
            raise TimedOutError(
                f"embedder {self.name}",
                f"no answer in {limit:g} s: is it up? Its limit_seconds may be raised",
            ) from error
