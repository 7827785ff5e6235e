"""Embedders for the contract suite: some take their time, some can be switched off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.spi.embedding import EmbeddingMode, Turn, TurnEmbedder


class WaitingEmbedder(HashEmbedder):
    """Lets others run before it answers, as a real one does."""

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        """The vectors, a moment later."""
        await asyncio.sleep(0)
        return await super().embed(texts, mode=mode)


class ContextEmbedder(HashEmbedder, TurnEmbedder):
    """Embeds a text together with what was said before it; keeps what it embedded."""

    reads_context = True

    def __init__(self, dimension: int = 64) -> None:
        super().__init__(dimension)
        self.embedded: list[Turn] = []

    async def embed_turns(self, turns: Sequence[Turn]) -> list[list[float]]:
        """The vectors of each context and text together."""
        self.embedded += turns
        return await super().embed([f"{context} {text}" for context, text in turns])


class FlakyEmbedder(HashEmbedder):
    """Fails while it is down, and always on a text that holds ``poison``; counts what it embeds."""

    def __init__(self, dimension: int = 64, *, down: bool = False, poison: str = "") -> None:
        super().__init__(dimension)
        self.down = down
        self.poison = poison
        self.embedded: list[str] = []

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        """The vectors, or an error that no engine knows."""
        if self.down:
            raise RuntimeError("the model is down")
        if self.poison and any(self.poison in text for text in texts):
            raise RuntimeError("the model chokes on a text")
        self.embedded += texts if mode == "passage" else []
        return await super().embed(texts, mode=mode)


class HangingEmbedder(HashEmbedder):
    """Never answers while it hangs, or to a text that holds ``poison``; counts how it is asked."""

    def __init__(
        self, *, hangs: bool = True, poison: str = "", limit_seconds: float = 0.02
    ) -> None:
        super().__init__()
        self.hangs = hangs
        self.poison = poison
        self.limit_seconds = limit_seconds
        self.calls = 0

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        """The vectors, or never."""
        self.calls += 1
        if self.hangs or (self.poison and any(self.poison in text for text in texts)):
            await asyncio.Event().wait()
        return await super().embed(texts, mode=mode)
