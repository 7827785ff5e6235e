from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.contracts.fact_recall import FactRecall
from holdfast.contracts.long_term import LongTerm
from holdfast.engines.inmemory.long_term import InMemoryLongTerm
from holdfast.spi.fact_draft import FactChange, FactDraft
from holdfast.spi.long_term import FactFilter, FactPage, FactScope, UnindexedFact
from holdfast.values.facts import Memory
from holdfast.values.identity import Agent
from holdfast.values.text import tokenize
from tests.mutants.registry import mutant


class _Recalling(LongTerm):
    """Recalls in its own way."""

    recall: type[FactRecall]

    def __init__(self, storage: Any, **options: Any) -> None:
        super().__init__(storage, **options)
        defaults = {"embedder": None, "graph": None, "mode": None, "language": "english"}
        self._recall = self.recall(storage, **defaults | options)


@mutant(
    "long_term",
    "test_a_search_finds_memories_that_hold_any_word_of_the_query",
    "test_a_memory_with_more_of_the_querys_words_comes_first",
    "test_a_rare_word_of_the_query_weighs_more_than_a_common_one",
    "test_the_score_lies_between_0_and_1_the_best_first",
)
class AllWordsMustMatch(LongTerm):
    """A memory must hold every word of the query."""

    async def search(self, agent_id: Agent, query: str, **options: Any) -> list[Memory]:
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

    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:
        known = self._facts(scope).keys.get(draft.key or "")
        return known or await super().save(scope, memory_id, draft, language)


@mutant("long_term", "test_of_concurrent_saves_that_supersede_the_same_memory_one_wins")
class SupersedesAfterAPause(InMemoryLongTerm):
    """What is superseded is looked at, and then the save waits."""

    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:
        old = draft.supersedes
        if draft.entities and old is not None:
            self._facts(scope).check_supersedes(old)
            await asyncio.sleep(0)
            self._facts(scope).all[old].superseded_by = None
        return await super().save(scope, memory_id, draft, language)


@mutant("long_term", "test_topic_narrows_a_search")
class RecentOfAnyTopic(InMemoryLongTerm):
    """The most recent memories are those of all topics."""

    async def recent(self, scope: FactScope, wanted: FactFilter) -> list[Memory]:
        return await super().recent(scope, wanted._replace(topic=None))


@mutant("long_term", "test_one_namespace_never_sees_anothers_memories")
class DeletesInEveryNamespace(InMemoryLongTerm):
    """A memory is deleted by its id, whatever the namespace."""

    async def delete(self, scope: FactScope, memory_id: str) -> bool:
        gone = await super().delete(scope, memory_id)
        _, agent = scope
        spaces = [space for space, owner in self._data.scopes if owner == agent]
        return gone or any(self._facts((space, agent)).remove(memory_id) for space in spaces)


@mutant(
    "long_term",
    "test_the_score_lies_between_0_and_1_the_best_first",
    "test_every_mode_scores_between_0_and_1",
)
class ScoresAreNotNormal(LongTerm):
    """A score of words is as large as BM25 makes it."""

    async def search(self, agent_id: Agent, query: str, **options: Any) -> list[Memory]:
        found = await super().search(agent_id, query, **options)
        return [
            replace(memory, score=memory.score * 7) if memory.found_by == ("text",) else memory
            for memory in found
        ]


@mutant(
    "long_term", "test_a_hybrid_search_with_the_embedder_down_answers_from_full_text_and_says_so"
)
class HidesTheOutage(LongTerm):
    """An answer from full text alone does not say so."""

    async def search(self, agent_id: Agent, query: str, **options: Any) -> list[Memory]:
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
            self, lacking: Sequence[UnindexedFact]
        ) -> tuple[list[list[float] | None], str]:
            vectors, problem = await super().embed(lacking)
            return ([None] * len(vectors) if problem else vectors), problem


@mutant("long_term", "test_a_memory_is_embedded_once")
class EmbedsEveryTime(_Recalling):
    """Every search embeds all memories anew."""

    class recall(FactRecall):  # noqa: N801 - the attribute it overrides
        async def search(self, scope: FactScope, *rest: Any) -> list[Memory]:
            assert isinstance(self._storage, InMemoryLongTerm)
            self._storage._facts(scope)._vectors.clear()
            return await super().search(scope, *rest)


@mutant("long_term", "test_the_memories_of_neighbours_come_after_those_of_the_entity")
class NeighboursCountAlike(_Recalling):
    """The memories of neighbours count as much as those of the entity."""

    class recall(FactRecall):  # noqa: N801 - the attribute it overrides
        async def named(self, query: str) -> dict[str, float]:
            return dict.fromkeys(await super().named(query), 1.0)


@mutant(
    "long_term",
    "test_list_goes_on_after_the_id_of_the_last_memory_even_when_that_memory_is_gone",
)
class ListsFromTheTopIfTheLastIsGone(InMemoryLongTerm):
    """A page after a memory that is gone begins with the newest."""

    async def list(self, scope: FactScope, page: FactPage) -> list[Memory]:
        known = page.after in self._facts(scope).all
        return await super().list(scope, page if known else page._replace(after=None))


@mutant("long_term", "test_list_leaves_out_superseded_memories_unless_it_is_asked_for_them")
class ListsTheSuperseded(InMemoryLongTerm):
    """A list has the superseded memories, too."""

    async def list(self, scope: FactScope, page: FactPage) -> list[Memory]:
        return await super().list(scope, page._replace(superseded=True))


@mutant(
    "long_term",
    "test_an_updated_memory_expires_when_the_old_one_would_have_unless_ttl_seconds_is_given",
)
class AnUpdateNeverExpires(InMemoryLongTerm):
    """An updated memory without a lifetime of its own stays for good."""

    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        saved = await super().update(scope, memory_id, change, language)
        if change.lifetime is None:
            self._facts(scope).all[saved].expires_at = None
        return saved


@mutant("long_term", "test_an_update_supersedes_a_memory_and_keeps_what_it_does_not_change")
class AnUpdateDropsTheRest(InMemoryLongTerm):
    """An update saves what it was given and nothing else."""

    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        given = change if change.topic is not None else replace(change, topic="", metadata="{}")
        return await super().update(scope, memory_id, given, language)


@mutant("long_term", "test_updating_an_unknown_memory_is_refused_and_nothing_is_written")
class UpdatesInEveryNamespace(InMemoryLongTerm):
    """A memory is updated by its id, whatever the namespace."""

    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        _, agent = scope
        for other in list(self._data.scopes):
            if other[1] == agent and change.supersedes in self._facts(other).all:
                return await super().update(other, memory_id, change, language)
        return await super().update(scope, memory_id, change, language)


@mutant(
    "long_term",
    "test_namespaces_are_those_where_the_agent_has_memories_by_code_points",
    "test_updating_an_unknown_memory_is_refused_and_nothing_is_written",
)
class NamespacesOfEveryone(InMemoryLongTerm):
    """The namespaces of all agents are listed."""

    async def namespaces(self, agent: str, limit: int, after: str) -> list[str]:  # noqa: ARG002 - it breaks here
        found = {space for space, _ in self._data.scopes if space > after}
        return sorted(found)[:limit]


@mutant("long_term", "test_an_update_keeps_the_subject")
class AnUpdateForgetsTheSubject(InMemoryLongTerm):
    """What supersedes a fact about somebody is about nobody."""

    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        saved = await super().update(scope, memory_id, change, language)
        fact = self._facts(scope).all[saved]
        fact.draft = replace(fact.draft, subject="")
        return saved


@mutant("long_term", "test_a_memory_has_the_subject_that_it_was_saved_with")
class ARetryMayNameAnotherSubject(InMemoryLongTerm):
    """A save with a known key is the same, whomever it is about."""

    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:
        for fact in self._facts(scope).all.values():
            if draft.key is not None and fact.draft.key == draft.key:
                draft = replace(draft, subject=fact.draft.subject)
        return await super().save(scope, memory_id, draft, language)
