from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.backends.inmemory.fact_recall import FactRecall
from holdfast.backends.inmemory.facts import Fact, Facts
from holdfast.backends.inmemory.long_term import InMemoryLongTerm
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.text import tokenize
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.long_term import Memory
from tests.mutants.registry import mutant


class _Recalling(InMemoryLongTerm):
    """Recalls in its own way."""

    recall: type[FactRecall]

    def __init__(self, engine: Any, **options: Any) -> None:
        super().__init__(engine, **options)
        options.pop("tenant", None)
        defaults = {"embedder": None, "graph": None, "mode": None, "language": "english"}
        self._recall = self.recall(**defaults | options)


@mutant(
    "long_term",
    "test_a_search_finds_memories_that_hold_any_word_of_the_query",
    "test_a_memory_with_more_of_the_querys_words_comes_first",
    "test_a_rare_word_of_the_query_weighs_more_than_a_common_one",
    "test_the_score_lies_between_0_and_1_the_best_first",
)
class AllWordsMustMatch(InMemoryLongTerm):
    """A memory must hold every word of the query."""

    async def search(self, agent_id: AgentId, query: str, **options: Any) -> list[Memory]:
        found = await super().search(agent_id, query, **options)
        if self._recall.mode != "text":
            return found
        language = self._recall.language
        wanted = set(tokenize(query, language=language))
        return [
            memory for memory in found if wanted <= set(tokenize(memory.content, language=language))
        ]


@mutant(
    "long_term",
    "test_a_save_with_the_same_idempotency_key_and_other_content_is_a_conflict",
    "test_memories_are_still_there_after_a_reopen",
)
class TheKeyIsEnough(InMemoryLongTerm):
    """A save with a known idempotency key is taken for the same, whatever it says."""

    async def save(self, agent_id: AgentId, content: str, **options: Any) -> str:
        scope = (options.get("namespace", "default"), str(agent_id))
        known = self._facts(scope).keys.get(options.get("idempotency_key") or "")
        return known or await super().save(agent_id, content, **options)


@mutant("long_term", "test_of_concurrent_saves_that_supersede_the_same_memory_one_wins")
class SupersedesAfterAPause(InMemoryLongTerm):
    """What is superseded is looked at, and then the save waits."""

    async def save(self, agent_id: AgentId, content: str, **options: Any) -> str:
        old = options.get("supersedes")
        if options.get("entities") and old is not None:
            scope = (options.get("namespace", "default"), str(agent_id))
            self._facts(scope).check_supersedes(old)
            await asyncio.sleep(0)
            self._facts(scope).all[old].superseded_by = None
        return await super().save(agent_id, content, **options)


@mutant("long_term", "test_topic_narrows_a_search")
class RecentOfAnyTopic(InMemoryLongTerm):
    """The most recent memories are those of all topics."""

    async def search(self, agent_id: AgentId, query: str, **options: Any) -> list[Memory]:
        if query == "":
            options.pop("topic", None)
        return await super().search(agent_id, query, **options)


@mutant("long_term", "test_one_namespace_never_sees_anothers_memories")
class DeletesInEveryNamespace(InMemoryLongTerm):
    """A memory is deleted by its id, whatever the namespace."""

    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        gone = await super().delete(agent_id, memory_id, namespace=namespace)
        agent = str(AgentId.parse(agent_id))
        spaces = [space for space, owner in self._data.scopes if owner == agent]
        return gone or any(self._facts((space, agent)).remove(memory_id) for space in spaces)


@mutant(
    "long_term",
    "test_the_score_lies_between_0_and_1_the_best_first",
    "test_every_mode_scores_between_0_and_1",
)
class ScoresAreNotNormal(InMemoryLongTerm):
    """A score of words is as large as BM25 makes it."""

    async def search(self, agent_id: AgentId, query: str, **options: Any) -> list[Memory]:
        found = await super().search(agent_id, query, **options)
        return [
            replace(memory, score=memory.score * 7) if memory.found_by == ("text",) else memory
            for memory in found
        ]


@mutant(
    "long_term", "test_a_hybrid_search_with_the_embedder_down_answers_from_full_text_and_says_so"
)
class HidesTheOutage(InMemoryLongTerm):
    """An answer from full text alone does not say so."""

    async def search(self, agent_id: AgentId, query: str, **options: Any) -> list[Memory]:
        found = await super().search(agent_id, query, **options)
        return [
            replace(memory, degraded="") if memory.found_by == ("text",) else memory
            for memory in found
        ]


@mutant("long_term", "test_a_text_that_the_embedder_cannot_take_never_blocks_its_neighbours")
class PoisonBlocksTheBatch(_Recalling):
    """If one text cannot be embedded, the others of the batch are not either."""

    class recall(FactRecall):  # noqa: N801 - the attribute it overrides
        async def embed(
            self, embedder: Embedder, now: Callable[[], Facts], missing: list[Fact]
        ) -> str:
            problem = await super().embed(embedder, now, missing)
            if problem:
                now()._vectors.clear()
            return problem


@mutant("long_term", "test_a_memory_is_embedded_once")
class EmbedsEveryTime(_Recalling):
    """Every search embeds all memories anew."""

    class recall(FactRecall):  # noqa: N801 - the attribute it overrides
        async def search(self, now: Callable[[], Facts], *rest: Any) -> list[Memory]:
            now()._vectors.clear()
            return await super().search(now, *rest)


@mutant("long_term", "test_the_memories_of_neighbours_come_after_those_of_the_entity")
class NeighboursCountAlike(_Recalling):
    """The memories of neighbours count as much as those of the entity."""

    class recall(FactRecall):  # noqa: N801 - the attribute it overrides
        async def named(self, graph: Graph, query: str) -> dict[str, float]:
            return dict.fromkeys(await super().named(graph, query), 1.0)
