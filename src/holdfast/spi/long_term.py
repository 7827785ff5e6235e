"""Facts, as an engine stores and recalls them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from holdfast.spi.fact_draft import FactChange, FactDraft
from holdfast.values.facts import Memory, RecallMode

FactScope: TypeAlias = tuple[str, str]
"""A namespace, and the canonical text of an agent."""


class FactFilter(NamedTuple):
    """Which facts of a scope a search may return, and how many. ``None`` means any topic."""

    limit: int
    topic: str | None
    min_confidence: float


class FactPage(NamedTuple):
    """Which facts of a scope a list returns: those older than ``after``, if an id is given."""

    wanted: FactFilter
    after: str | None
    superseded: bool


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """A query with its entities and its vector.

    ``entities`` are the entities that it names, and their neighbours, each with its weight.
    ``vector`` is its embedding by ``model``, or ``None``.
    """

    text: str
    mode: RecallMode
    language: str
    entities: Mapping[str, float]
    model: str | None
    vector: list[float] | None


class UnindexedFact(NamedTuple):
    """A live fact without its words or its vector in the index. ``ref`` is the engine's own id."""

    ref: Any
    content: str
    lacks_words: bool
    lacks_vector: bool


class FoundFacts(NamedTuple):
    """What a search found, the best first, and the facts of the scope that are not indexed yet."""

    memories: list[Memory]
    unindexed: Sequence[UnindexedFact]


class LongTermStorage(Protocol):
    """The facts of one tenant. The caller checks all arguments. An expired fact is absent."""

    name: str
    """The engine's name in errors."""

    @abstractmethod
    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:
        """Store a fact, and return its id, or that of an earlier save with the same key.

        Words are indexed in ``language``. Raises what ``replayed`` raises. Raises
        ``NotFoundError("memory", id)`` if the fact that it supersedes does not exist, and
        ``superseded_before(…)`` if that fact is superseded already.
        """

    @abstractmethod
    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        """Store a fact that supersedes another, and return its id, as ``save`` does.

        Fields that are ``None`` in the change keep the values of the old fact, its expiry too.
        """

    @abstractmethod
    async def replayed(self, scope: FactScope, draft: FactDraft | FactChange) -> str | None:
        """Return the id of an earlier save with the same key; ``None`` if there is none.

        Raises ``used_before(…)`` if that save has another fingerprint.
        """

    @abstractmethod
    async def get(self, scope: FactScope, memory_id: str) -> Memory | None:
        """Return a fact, superseded or not."""

    @abstractmethod
    async def delete(self, scope: FactScope, memory_id: str) -> bool:
        """Delete a fact. Returns whether it was there."""

    @abstractmethod
    async def clear(self, scope: FactScope) -> None:
        """Delete all facts of a scope."""

    @abstractmethod
    async def namespaces(self, agent: str, limit: int, after: str) -> list[str]:
        """Return the namespaces after ``after`` in which an agent has facts, by code points."""

    @abstractmethod
    async def recent(self, scope: FactScope, wanted: FactFilter) -> list[Memory]:
        """Return the newest facts that are not superseded, marked as found by ``recent``."""

    @abstractmethod
    async def search(
        self, scope: FactScope, wanted: FactFilter, question: FactQuestion
    ) -> FoundFacts:
        """Return the best facts that are not superseded, scored as ``values.ranking`` does."""

    @abstractmethod
    async def index(
        self,
        question: FactQuestion,
        facts: Sequence[UnindexedFact],
        vectors: Sequence[list[float] | None],
    ) -> None:
        """Add facts of one scope to the index: their words, and vectors of the question's model.

        ``None`` means no vector. A fact that was deleted or superseded since is skipped.
        """

    @abstractmethod
    async def list(self, scope: FactScope, page: FactPage) -> list[Memory]:
        """Return a page of facts by their ids, the newest first; ids are ordered by time."""
