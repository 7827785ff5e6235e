from __future__ import annotations

from typing import Any

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.inmemory.episodes import InMemoryEpisodes
from holdfast.engines.inmemory.event_index import EventIndex
from holdfast.engines.inmemory.vector_rows import VectorRows
from tests.mutants.registry import mutant


class _Indexes(dict[str, EventIndex]):
    """The indexes of a log, made by a broken class."""

    def __init__(self, made: type[EventIndex]) -> None:
        super().__init__()
        self._made = made

    def setdefault(self, key: str, *_: Any) -> EventIndex:
        """Make the index of an agent, whatever the default is."""
        return super().setdefault(key, self._made())


class _Broken(InMemoryEpisodes):
    """The log of the in-memory engine with broken indexes."""

    made: type[EventIndex]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not isinstance(self._log._indexes, _Indexes):
            self._log._indexes = _Indexes(self.made)


class _AcrossSessions(EventIndex):
    def _before(self, row: Any) -> Any:
        said = [one for session in self._said.values() for one in session if one.row is not row]
        return [one.utterance for one in reversed(said)]


@mutant("episodes", "test_an_answer_borrows_only_in_its_own_session")
class BorrowsAcrossSessions(_Broken):
    """An answer borrows from what was said last in any session."""

    made = _AcrossSessions


class _NotAgain(EventIndex):
    def _after(self, session: str, removed: Any) -> Any:
        super()._after(session, removed)
        return []


@mutant("episodes", "test_what_was_cleared_is_not_borrowed_any_more",
        "test_an_embedder_that_reads_context_reads_nothing_that_was_cleared")  # fmt: skip
class BorrowsAfterErasure(_Broken):
    """What borrowed from an event is not indexed again when that event is removed."""

    made = _NotAgain


class _SameVector(EventIndex):
    def embedded(self, row: Any, turn: Any, vector: Any) -> None:
        super().embedded(row, turn, vector)
        self._in_context.clear()


@mutant("episodes", "test_an_embedder_that_reads_context_reads_nothing_that_was_cleared")
class KeepsVectorsOfWhatWasErased(_Broken):
    """A vector stays although what the embedder read before the text was removed."""

    made = _SameVector


class _WordsOnly(VectorRows):
    def nearest(self, *_: Any, **__: Any) -> dict[str, float]:
        return {}


class _IndexOfWordsOnly(EventIndex):
    def __init__(self) -> None:
        super().__init__(vectors=_WordsOnly())


@mutant("episodes", "test_a_candidate_of_one_arm_has_its_score_of_the_other_arm_too",
        "test_recall_with_an_embedder_finds_by_meaning_what_shares_no_word")  # fmt: skip
class LosesCandidatesOfMeaning(_Broken):
    """Only the candidates of the words are ranked."""

    made = _IndexOfWordsOnly


class _NotCompleted(VectorRows):
    def of(self, *_: Any, **__: Any) -> dict[str, float]:
        return {}


class _IndexNotCompleted(EventIndex):
    def __init__(self) -> None:
        super().__init__(vectors=_NotCompleted())


@mutant("episodes", "test_a_candidate_of_one_arm_has_its_score_of_the_other_arm_too")
class LeavesAnArmOut(_Broken):
    """A candidate of the words has no score by meaning."""

    made = _IndexNotCompleted


@mutant("episodes", "test_equal_scores_at_the_last_candidate_are_ordered_by_session_epoch_and_seq",
        "test_equal_scores_are_ordered_by_session_epoch_and_seq")  # fmt: skip
class TiesGoByArrival(EpisodicMemory):
    """Of equal scores the one that was appended last comes first."""

    async def recall(self, agent_id: Any, query: Any, **how: Any) -> Any:
        every = await super().recall(agent_id, query, **{**how, "limit": 10_000})
        every.sort(key=lambda hit: hit.event.session_id, reverse=True)
        every.sort(key=lambda hit: round(hit.score, 9), reverse=True)
        return every[: how.get("limit", 5)]


@mutant("episodes", "test_a_reranker_orders_the_first_20_hits")
class RerankerSeesTheLimit(EpisodicMemory):
    """A reranker orders as many hits as were asked for."""

    async def recall(self, agent_id: Any, query: Any, **how: Any) -> Any:
        reranker = how.pop("reranker", None)
        hits = await super().recall(agent_id, query, **how)
        if reranker is None or not isinstance(query, str) or not query.strip() or not hits:
            return hits
        scores = await reranker.rerank(query, hits)
        order = sorted(range(len(hits)), key=lambda at: -scores[at])
        return [hits[at] for at in order]
