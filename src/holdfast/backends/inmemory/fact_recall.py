"""Recall of facts: by words, by meaning, by links, and by all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from holdfast.backends.cosine import cosines
from holdfast.backends.inmemory.engine import InMemory
from holdfast.backends.inmemory.facts import Fact, Facts
from holdfast.kernel.core.ranking import blend, fuse, normalise
from holdfast.kernel.storage.embedding import Embedder, embed_possible
from holdfast.kernel.storage.fact_question import FactQuestion, FactQuestions
from holdfast.kernel.storage.long_term import Memory

_log = logging.getLogger("holdfast.recall")


class FactRecall(FactQuestions):
    """One way of recall over facts in the process."""

    async def search(
        self, now: Callable[[], Facts], query: str, limit: int, fits: Callable[[Fact], bool]
    ) -> list[Memory]:
        """The best ``limit`` of the facts that fit; ``now`` gives them as they are at present."""
        self.check_configured(engine=InMemory.name)
        if not query.strip():
            recent = [fact for fact in now().live() if fits(fact)][::-1]
            return [fact.to_memory(found_by=("recent",)) for fact in recent[:limit]]
        question = await self.ask(query)
        if self.embedder and question.vector is not None:
            held = now().vectors(self.embedder)
            missing = [fact for fact in now().live() if fact.id not in held]
            if problem := await self.embed(self.embedder, now, missing):
                question.degraded = f"some memories have no embedding yet: {problem}"
        if question.degraded:
            _log.warning("%s", question.degraded)
        facts = now()
        allowed = {fact.id: fact for fact in facts.live() if fits(fact)}
        arms = self._arms(facts, query, question, allowed)
        scores = self._scores(arms)
        best = sorted(scores, key=lambda key: (-scores[key], -allowed[key].number))[:limit]
        return [
            allowed[key].to_memory(
                scores[key],
                tuple(name for name, arm in arms.items() if key in arm),
                question.degraded,
            )
            for key in best
        ]

    async def embed(self, embedder: Embedder, now: Callable[[], Facts], missing: list[Fact]) -> str:
        """Keep the vectors of facts that have none yet; why some still have none."""
        vectors, problem = await embed_possible(embedder, [fact.content for fact in missing])
        for fact, vector in zip(missing, vectors, strict=True):
            if vector is not None:
                now().keep_vector(embedder, fact.id, vector)
        return problem

    def _arms(
        self, facts: Facts, query: str, question: FactQuestion, allowed: Mapping[str, Fact]
    ) -> dict[str, dict[str, float]]:
        arms: dict[str, dict[str, float]] = {"text": {}, "vector": {}, "graph": {}}
        if self.mode in {"text", "hybrid"}:
            arms["text"] = facts.words(query, self.language, allowed.__contains__)
        if question.vector is not None and self.embedder:
            held = facts.vectors(self.embedder)
            arms["vector"] = cosines(
                question.vector, {key: vector for key, vector in held.items() if key in allowed}
            )
        for entity, counts in question.entities.items():
            for key in facts.links(entity):
                if key in allowed:
                    arms["graph"][key] = max(counts, arms["graph"].get(key, 0.0))
        return arms

    def _scores(self, arms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        match self.mode:
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
