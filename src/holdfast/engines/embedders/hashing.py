"""An embedder that hashes words, for tests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.values.errors import InvalidInputError
from holdfast.values.text import tokenize


class HashEmbedder(Embedder):
    """Vectors from the hashes of words, for tests: it ignores meaning.

    It needs no model and returns the same vector for a text on every machine. Texts that share
    words are near each other; synonyms are as far apart as any two words.

    >>> HashEmbedder(dimension=8).name
    'hash-8'
    """

    lexical_weight = 0.7

    def __init__(self, dimension: int = 64) -> None:
        if dimension < 1:
            raise InvalidInputError("dimension", f"must be 1 or more, not {dimension}")
        self._dimension = dimension

    @property
    def name(self) -> str:
        """The name, with the dimension: embedders of different dimensions differ in name."""
        return f"hash-{self._dimension}"

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._dimension

    async def embed(
        self,
        texts: Sequence[str],
        *,
        mode: EmbeddingMode = "passage",  # noqa: ARG002 - a hash embeds both alike
    ) -> list[list[float]]:
        """Return for each text the sum of its words' vectors, scaled to length 1."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        # A text without words is hashed as a whole, so that its vector is not zero.
        directions = [_direction(word, self._dimension) for word in tokenize(text) or [text]]
        total = [math.fsum(numbers) for numbers in zip(*directions, strict=True)]
        length = math.sqrt(math.fsum(number * number for number in total))
        return [number / length for number in total]


@lru_cache(maxsize=10_000)
def _direction(word: str, dimension: int) -> tuple[float, ...]:
    digest = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(dimension)
    # Odd numbers around 0, so that no word's vector is zero.
    return tuple(float(2 * byte - 255) for byte in digest)
