"""Word vectors that ship in a wheel: no download, no GPU, a few microseconds per text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.values.errors import MissingExtraError

INLINE = 8
"""Up to this many texts are embedded on the event loop: a thread would take longer to start."""

MAX_CHARACTERS = 20_000
"""The rest of a longer text is ignored: a mean over more words distinguishes less and less."""


class StaticEmbedder(Embedder):
    """wordllama: the mean of the vectors of a text's word pieces, from weights in its wheel.

    It works offline and is loaded on first use. It ignores context, so it complements a search by
    words and does not replace it. ::

        holdfast.open("./state", embedder=StaticEmbedder())
    """

    name = "wordllama-256"
    dimension = 256
    lexical_weight = 0.7

    def __init__(self) -> None:
        found = find_spec("wordllama")
        if found is None or found.origin is None:
            raise MissingExtraError("StaticEmbedder", "embeddings")
        self._folder = Path(found.origin).parent
        self._model: Any = None

    async def embed(
        self,
        texts: Sequence[str],
        *,
        mode: EmbeddingMode = "passage",  # noqa: ARG002 - it embeds both alike
    ) -> list[list[float]]:
        """Return the mean of the vectors of each text's word pieces, scaled to length 1."""
        if self._model is None:
            self._model = await asyncio.to_thread(self._load)
        if len(texts) <= INLINE:
            return self._embed(list(texts))
        return await asyncio.to_thread(self._embed, list(texts))

    def _load(self) -> Any:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            from wordllama import WordLlama  # noqa: PLC0415 - the extra may not be installed
        finally:
            # Importing wordllama configures the root logger. Undo that: it is the program's.
            root.handlers[:] = handlers
            root.setLevel(level)
        model = WordLlama.load(cache_dir=self._folder, dim=self.dimension, disable_download=True)
        # The default pads a batch to its longest text, so that one long text makes it huge.
        model.tokenizer.no_padding()
        return model

    def _embed(self, texts: list[str]) -> list[list[float]]:
        encoded = self._model.tokenizer.encode_batch_fast(
            [text[:MAX_CHARACTERS] for text in texts], add_special_tokens=False
        )
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, one in enumerate(encoded):
            if one.ids:
                self._model.embedding[one.ids].mean(axis=0, out=vectors[row])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # A text without word pieces has a zero vector: give all such texts the same unit vector.
        vectors[lengths[:, 0] == 0, 0] = 1.0
        lengths[lengths == 0] = 1.0
        found: list[list[float]] = (vectors / lengths).tolist()
        return found
