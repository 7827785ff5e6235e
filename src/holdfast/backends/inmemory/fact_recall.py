"""Recall of facts: by words, by meaning, by links, and by all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.backends.cosine import cosines
from holdfast.backends.inmemory.engine import InMemory
from holdfast.backends.inmemory.facts import Fact, Facts
from holdfast.kernel.core.errors import HoldfastError, NotSupportedError
from holdfast.kernel.core.ranking import blend, fuse, normalise
from holdfast.kernel.core.text import check_language, names_in
from holdfast.kernel.storage.embedding import Embedder, embed_possible, embed_texts
from holdfast.kernel.storage.graph import GraphStore
from holdfast.kernel.storage.long_term import Memory, RecallMode, check_mode

_log = logging.getLogger("holdfast.recall")
NEIGHBOUR = 0.5
"""What a memory of a neighbour counts beside one of the entity that a query names."""


@dataclass(slots=True)
class _Asked:
    """What was found out about a query before the facts are looked at."""

    vector: list[float] | None = None
    entities: dict[str, float] = field(default_factory=dict)
    degraded: str = ""


class FactRecall:
    """One way of recall, chosen when the store is made."""

    def __init__(
        self,
        *,
        embedder: Embedder | None,
        graph: GraphStore | None,
        mode: RecallMode | None,
        language: str,
    ) -> None:
        self._embedder = embedder
        self._graph = graph
        default: RecallMode = "text" if embedder is None and graph is None else "hybrid"
        self._mode = default if mode is None else check_mode(mode)
        self._language = check_language("language", language)

    async def search(
        self, now: Callable[[], Facts], query: str, limit: int, fits: Callable[[Fact], bool]
    ) -> list[Memory]:
        """The best ``limit`` of the facts that fit; ``now`` gives them as they are at present."""
        self._check_configured()
        if not query.strip():
            recent = [fact for fact in now().live() if fits(fact)][::-1]
            return [fact.to_memory(found_by=("recent",)) for fact in recent[:limit]]
        asked = await self._ask(now, query)
        facts = now()
        allowed = {fact.id: fact for fact in facts.live() if fits(fact)}
        arms = self._arms(facts, query, asked, allowed)
        scores = self._scores(arms)
        best = sorted(scores, key=lambda key: (-scores[key], -allowed[key].number))[:limit]
        return [
            allowed[key].to_memory(
                scores[key], tuple(name for name, arm in arms.items() if key in arm), asked.degraded
            )
            for key in best
        ]

    def _check_configured(self) -> None:
        lacking = {
            "vector": None if self._embedder else "an embedder, as in embedder=HashEmbedder()",
            "graph": None if self._graph else "a graph, as in graph=InMemoryGraph(engine)",
        }.get(self._mode)
        if lacking:
            raise NotSupportedError(
                InMemory.name, f"long-term memory in mode {self._mode}", why=f"configure {lacking}"
            )

    async def _ask(self, now: Callable[[], Facts], query: str) -> _Asked:
        """Everything that waits for others, before the facts are read."""
        asked = _Asked()
        if self._embedder and self._mode in {"vector", "hybrid"}:
            try:
                [asked.vector] = await embed_texts(self._embedder, [query], mode="query")
            except HoldfastError as error:
                if self._mode == "vector":
                    raise
                asked.degraded = f"recall by words only: {error}"
            else:
                held = now().vectors(self._embedder)
                missing = [fact for fact in now().live() if fact.id not in held]
                texts = [fact.content for fact in missing]
                vectors, problem = await embed_possible(self._embedder, texts)
                for fact, vector in zip(missing, vectors, strict=True):
                    if vector is not None:
                        now().keep_vector(self._embedder, fact.id, vector)
                if problem:
                    asked.degraded = f"some memories have no embedding yet: {problem}"
        if self._graph and self._mode in {"graph", "hybrid"}:
            asked.entities = await self._named(self._graph, query)
        if asked.degraded:
            _log.warning("%s", asked.degraded)
        return asked

    async def _named(self, graph: GraphStore, query: str) -> dict[str, float]:
        """The entities that a query names, and their neighbours, with what each counts."""
        found: dict[str, float] = {}
        named = await graph.find_entities(names_in(query))
        for entity in named:
            around = await graph.get_neighbors(entity.id)
            found |= {other.id: NEIGHBOUR for other in around.entities}
        return found | {entity.id: 1.0 for entity in named}

    def _arms(
        self, facts: Facts, query: str, asked: _Asked, allowed: Mapping[str, Fact]
    ) -> dict[str, dict[str, float]]:
        arms: dict[str, dict[str, float]] = {"text": {}, "vector": {}, "graph": {}}
        if self._mode in {"text", "hybrid"}:
            arms["text"] = facts.words(query, self._language, allowed.__contains__)
        if asked.vector is not None and self._embedder:
            held = facts.vectors(self._embedder)
            arms["vector"] = cosines(
                asked.vector, {key: vector for key, vector in held.items() if key in allowed}
            )
        for entity, counts in asked.entities.items():
            for key in facts.links(entity):
                if key in allowed:
                    arms["graph"][key] = max(counts, arms["graph"].get(key, 0.0))
        return arms

    def _scores(self, arms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        match self._mode:
            case "text":
                return normalise(arms["text"])
            case "vector":
                return {key: (1 + cosine) / 2 for key, cosine in arms["vector"].items()}
            case "graph":
                return dict(arms["graph"])
            case "hybrid":
                if not arms["vector"]:
                    return blend(normalise(arms["text"]), arms["graph"])
                return blend(fuse(arms["text"], arms["vector"]), arms["graph"])
