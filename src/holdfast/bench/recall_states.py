"""The states that ``holdfast bench recall`` searches: without time limits, filled and indexed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from holdfast.bench.conversations import Conversation
from holdfast.bench.index_size import TableSize, maintain, table_sizes
from holdfast.engines.embedders.limited import LimitedEmbedder
from holdfast.spi.embedding import (
    Embedder,
    EmbeddingMode,
    Turn,
    TurnEmbedder,
    embed_texts,
    embed_turns,
    lexical_weight,
    reads_context,
)
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

PATIENCE_SECONDS = 86_400.0
"""The time limit of a statement or a model: long enough for any machine."""


class OnceEmbedder(TurnEmbedder):
    """Embeds each turn once, although several engines store it; questions are embedded each time.

    ::

        model = OnceEmbedder(await OnnxEmbedder.open("models/e5-small"))
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._vectors: dict[Turn, list[float]] = {}
        self.reads_context = reads_context(inner)
        self.lexical_weight = lexical_weight(inner)

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
    ) -> list[list[float]]:
        """Return the vectors of questions, or of turns without a context."""
        if mode == "query":
            return await embed_texts(self._inner, texts, mode=mode)
        return await self.embed_turns([("", text) for text in texts])

    async def embed_turns(self, turns: Sequence[Turn]) -> list[list[float]]:
        """Return the vectors of turns; those that were embedded before come from a cache."""
        missing = [turn for turn in dict.fromkeys(turns) if turn not in self._vectors]
        made = await embed_turns(self._inner, missing)
        self._vectors |= dict(zip(missing, made, strict=True))
        return [self._vectors[turn] for turn in turns]


@asynccontextmanager
async def opened(url: str, tenant: str, model: Embedder | None) -> AsyncIterator[State]:
    """Open a state without time limits for statements and the model, for slow machines.

    Nothing runs in the background: all events are embedded and indexed before they are measured. ::

        async with opened("memory:", "words", None) as state: ...
    """
    settings = Settings(
        auto_migrate=True,
        background=False,
        command_timeout_seconds=PATIENCE_SECONDS,
        search_timeout_seconds=PATIENCE_SECONDS,
    )
    patient = None if model is None else LimitedEmbedder(model, limit_seconds=PATIENCE_SECONDS)
    async with open_state(url, tenant=tenant, embedder=patient, settings=settings) as state:
        yield state


async def record(state: State, conversations: Iterable[Conversation]) -> None:
    """Record conversations, each under its agent, and index them.

    ::

        await record(state, conversations)
    """
    for one in conversations:
        for name, messages in one.sessions.items():
            memory = state.memory(one.agent, session_id=one.session_id(name))
            await memory.record_many(messages)
        await settle(state, one.agent)


async def settle(state: State, agent: str) -> None:
    """Embed and index the recorded events, so that only the questions are timed.

    ::

        await settle(state, "ana")
    """
    await state.ops.embed_pending()
    await state.memory(agent).recall("settled?", 1)


async def analyse(url: str) -> dict[str, TableSize]:
    """Maintain a database as ``holdfast db maintain`` does.

    Returns the sizes of its tables; empty in memory.

    ::

        sizes = await analyse(url)
    """
    if url.startswith("memory:"):
        return {}
    await maintain(url, patience_seconds=PATIENCE_SECONDS)
    return await table_sizes(url)
