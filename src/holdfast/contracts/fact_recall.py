"""Recall of facts: analyses a query, and indexes the facts that are not indexed yet."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from holdfast.contracts.graph import Graph
from holdfast.spi.embedding import Embedder, embed_possible, embed_texts
from holdfast.spi.long_term import (
    FactFilter,
    FactQuestion,
    FactScope,
    LongTermStorage,
    UnindexedFact,
)
from holdfast.values.errors import HoldfastError, InvalidInputError, NotSupportedError
from holdfast.values.facts import MODES, Memory, RecallMode
from holdfast.values.text import check_language, names_in

NEIGHBOUR = 0.5
"""The weight of facts about neighbours of an entity that the query names; the entity has 1."""

_log = logging.getLogger("holdfast.recall")


class FactRecall:
    """Searches facts in one mode (text, vector, graph or hybrid), chosen at creation."""

    def __init__(
        self,
        storage: LongTermStorage,
        *,
        embedder: Embedder | None,
        graph: Graph | None,
        mode: RecallMode | None,
        language: str,
    ) -> None:
        default: RecallMode = "text" if embedder is None and graph is None else "hybrid"
        self.mode = default if mode is None else check_mode(mode)
        self.language = check_language("language", language)
        self._storage = storage
        self._embedder = embedder if self.mode in {"vector", "hybrid"} else None
        self._graph = graph if self.mode in {"graph", "hybrid"} else None

    def on(
        self, *, storage: LongTermStorage | None = None, graph: Graph | None = None
    ) -> FactRecall:
        """Return a copy that uses another storage or graph."""
        return FactRecall(
            storage or self._storage,
            embedder=self._embedder,
            graph=graph or self._graph,
            mode=self.mode,
            language=self.language,
        )

    async def search(self, scope: FactScope, query: str, wanted: FactFilter) -> list[Memory]:
        """Return the best facts of a scope. Facts that are not indexed yet are indexed first."""
        self._check_configured()
        if not query.strip():
            return await self._storage.recent(scope, wanted)
        vector, degraded = await self._embedded(query)
        question = FactQuestion(
            query,
            self.mode,
            self.language,
            await self.named(query),
            self._embedder.name if self._embedder else None,
            vector,
        )
        memories, lacking = await self._storage.search(scope, wanted, question)
        if lacking:
            vectors, problem = await self.embed(lacking)
            if problem:
                degraded = f"some memories have no embedding yet: {problem}"
            if any(vectors) or any(fact.lacks_words for fact in lacking):
                await self._storage.index(question, lacking, vectors)
                memories, _ = await self._storage.search(scope, wanted, question)
        if degraded:
            _log.warning("%s", degraded)
            return [replace(memory, degraded=degraded) for memory in memories]
        return memories

    async def named(self, query: str) -> dict[str, float]:
        """Return the entities that a query names, and their neighbours, with their weights."""
        if self._graph is None:
            return {}
        found: dict[str, float] = {}
        named = await self._graph.find_entities(names_in(query))
        for entity in named:
            around = await self._graph.get_neighbors(entity.id)
            found |= {other.id: NEIGHBOUR for other in around.entities}
        return found | {entity.id: 1.0 for entity in named}

    async def embed(self, lacking: Sequence[UnindexedFact]) -> tuple[list[list[float] | None], str]:
        """Return the vectors of facts that lack one, and why some still have none."""
        positions = [at for at, fact in enumerate(lacking) if fact.lacks_vector]
        vectors: list[list[float] | None] = [None] * len(lacking)
        if not positions or self._embedder is None:
            return vectors, ""
        made, problem = await embed_possible(
            self._embedder, [("", lacking[at].content) for at in positions]
        )
        for at, vector in zip(positions, made, strict=True):
            vectors[at] = vector
        return vectors, problem

    async def _embedded(self, query: str) -> tuple[list[float] | None, str]:
        """Return the vector of a query, or ``None`` and the reason."""
        if self._embedder is None:
            return None, ""
        try:
            [vector] = await embed_texts(self._embedder, [query], mode="query")
        except HoldfastError as error:
            if self.mode == "vector":
                raise
            return None, f"recall by words only: {error}"
        return vector, ""

    def _check_configured(self) -> None:
        """Raise an error if the mode needs an embedder or a graph that is not configured."""
        lacking = {
            "vector": None if self._embedder else "an embedder, as in embedder=HashEmbedder()",
            "graph": None if self._graph else "a graph, as in graph=state.graph",
        }.get(self.mode)
        if lacking:
            raise NotSupportedError(
                self._storage.name,
                f"long-term memory in mode {self.mode}",
                why=f"configure {lacking}",
            )


def check_mode(mode: object) -> RecallMode:
    """Check a mode of recall.

    >>> check_mode("hybrid")
    'hybrid'
    """
    match mode:
        case "text" | "vector" | "graph" | "hybrid":
            return mode
        case _:
            raise InvalidInputError("mode", f"unknown {mode!r}: known are {', '.join(MODES)}")
