"""An agent's whole memory: its state, events and facts, and the part that fits a prompt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

from holdfast.contracts.working_memory import AgentFacts, WorkingMemory
from holdfast.spi.log_entry import LogEntry
from holdfast.spi.reranking import Reranker
from holdfast.values.content import ChatMessage
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import AgentId, AnyAgent
from holdfast.values.memory import Assembled, Hydrated

Recordable: TypeAlias = "Event | ChatMessage | tuple[str, dict[str, Any]]"
"""What can be recorded in a batch: a type with its payload, a message, or a whole event."""

DAY_SECONDS = 86_400.0


class MemoryLog(Protocol):
    """The methods of a session log that an agent's memory uses; ``EpisodicMemory`` has them."""

    @abstractmethod
    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Append events: see ``EpisodicMemory.append``."""

    @abstractmethod
    async def append_checked(self, entry: LogEntry) -> Event:
        """Append an event that the caller has checked: see ``EpisodicMemory.append_checked``."""

    @abstractmethod
    async def recent(
        self,
        agent_id: AnyAgent,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the newest events: see ``EpisodicMemory.recent``."""

    @abstractmethod
    async def between(
        self,
        agent_id: AnyAgent,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = None,
        types: list[str] | None = None,
        limit: int = 1000,
        cursor: str | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the events of a time range: see ``EpisodicMemory.between``."""

    @abstractmethod
    async def recall(
        self,
        agent_id: AnyAgent,
        query: str | list[float],
        *,
        limit: int = 5,
        session_id: str | None = None,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: dict[str, Any] | None = None,
        explain: bool = False,
        reranker: Reranker | None = None,
    ) -> list[Recalled]:
        """Return the events that match a query: see ``EpisodicMemory.recall``.

        Raises ``NotSupportedError`` if the engine cannot search events.
        """


@runtime_checkable
class AgentMemory(Protocol):
    """The memory of one agent, in one session or over all of them.

    ``recent``, ``between`` and ``state`` belong to the session. Without a session, the first two
    return everything the agent did, and ``state`` is a document that belongs to the agent.
    ``recall`` and ``facts`` cover all sessions. Each event is stored once: a message recorded here
    is also in the transcript (``HistoryStore``), and a message of the transcript is also in this
    memory.

    Promises:

    - what was recorded comes back as the most recent
    - record returns the event with its position
    - a message is recorded as it is and is in the transcript
    - a message of the transcript is recalled too
    - the same event_id and payload again is a no-op that returns the first position
    - the same event_id and payload with another time is the same event, and the first time stays
    - the same event_id with another payload is a conflict and nothing is written
    - two equal records without an event_id stay two
    - record_many keeps the order of its events
    - record_many refuses an event of another agent or session
    - record_many refuses embeddings that are not as many as the events
    - recent and between of a session hold nothing of another
    - without a session recent and between hold everything the agent did
    - what is recorded without a session is the agent's own
    - between takes the start and leaves the end
    - recall finds what was said in an earlier session
    - recall is narrowed by session, type and time
    - where narrows recent, between and recall to payloads that pass
    - recall by vector finds the nearest
    - every hit says which arms found it, with a score between 0 and 1
    - neighbours bring in what stands beside a hit
    - recency lifts the newer of two hits
    - neighbours and recency change nothing unless they are asked for
    - a recency_weight outside of 0 to 1 is refused
    - explanations and rerankers go together with neighbours and recency
    - state is the session's working memory and keys reads only those
    - without a session state is a document of the agent's own
    - facts are the agent's in every session
    - hydrate of a new session says so and is empty
    - hydrate of a known session has its state and its recent events
    - hydrate knows a session by its state alone
    - hydrate with a query recalls from all sessions
    - hydrate with the embedder down answers and says so
    - assemble stays within its budget
    - assemble puts state, facts and recalled events before the recent window
    - assemble shows nothing twice
    - assemble recalls as many events as the budget may hold, at most limit
    - assemble shows recalled events in the order of time, with each day once
    - assemble reports what it left out and why
    - assemble never parts a tool call from its result
    - one agent never sees another's memory
    - one tenant never sees another's memory
    - a memory is still there after a reopen
    """

    @property
    @abstractmethod
    def agent_id(self) -> AgentId:
        """The agent that the memory belongs to."""

    @property
    @abstractmethod
    def session_id(self) -> str | None:
        """The session that the memory is bound to; ``None`` means all sessions."""

    @property
    @abstractmethod
    def state(self) -> WorkingMemory:
        """Working memory: ``get``, ``update``, ``set``, ``clear``."""

    @property
    @abstractmethod
    def facts(self) -> AgentFacts:
        """What the agent knows across sessions: ``save``, ``search``, ``get``, ``delete``."""

    @abstractmethod
    async def record(
        self,
        type: str,
        payload: dict[str, Any] | ChatMessage,
        *,
        event_id: str | None = None,
        run_id: str | None = None,
        occurred_at: datetime | None = None,
    ) -> Event:
        """Record one event. With an ``event_id``, a retry has no further effect.

        Returns the stored event with its position and time. Raises ``ConflictError`` for the same
        ``event_id`` with another type, run or payload. ::

            await memory.record("decision", {"use": "postgres"})
            await memory.record("message", ChatMessage.user("hello"))
        """

    @abstractmethod
    async def record_many(
        self,
        events: Sequence[Recordable],
        embeddings: list[list[float]] | None = None,
    ) -> list[Event]:
        """Record several events, all or none; ``embeddings`` are their vectors.

        ::

            await memory.record_many([("observation", {"tide": "low"}), ChatMessage.user("hello")])
        """

    @abstractmethod
    async def recent(
        self,
        limit: int = 20,
        *,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the newest events, ascending; ``where`` filters them by their payloads.

        ::

            window = await memory.recent(50)
            failed = await memory.recent(where={"status": "failed"})
        """

    @abstractmethod
    async def between(
        self,
        start: datetime,
        end: datetime,
        *,
        types: list[str] | None = None,
        limit: int = 1000,
        cursor: str | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the events from ``start`` until before ``end``.

        ``cursor`` is that of the last event of the previous page. ::

            tuesday = await memory.between(start, start + timedelta(days=1))
            more = await memory.between(start, end, cursor=tuesday[-1].cursor)
        """

    @abstractmethod
    async def recall(
        self,
        query: str | list[float],
        limit: int = 5,
        *,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        session_id: str | None = None,
        neighbours: int = 0,
        recency_weight: float = 0.0,
        half_life_seconds: float = 7 * DAY_SECONDS,
        where: dict[str, Any] | None = None,
        explain: bool = False,
        reranker: Reranker | None = None,
    ) -> list[Recalled]:
        """Return the events that best match a question, from all sessions, the best first.

        ``neighbours`` is how many events before and after a hit get a share of its score, and so
        can be hits, too. Even with 0, a hit close to other hits scores a little higher.
        ``recency_weight``, from 0 to 1, is the weight of recency against relevance; recency halves
        every ``half_life_seconds``. ``where`` filters hits and neighbours by their payloads.
        ``explain`` adds an ``explanation`` to each hit. A ``reranker`` orders the first 20 hits of
        a question in words, before neighbours and recency count. ::

            for hit in await memory.recall("which database did we choose?"):
                print(hit.score, hit.found_by, hit.event.payload)
        """

    @abstractmethod
    async def hydrate(
        self, query: str | list[float] | None = None, *, limit: int = 5, recent_limit: int = 20
    ) -> Hydrated:
        """Return what an agent needs to resume: status, state, newest events, recalled events.

        All are read concurrently. ``limit`` is how many events are recalled; without a ``query``,
        none are. ::

            woken = await memory.hydrate("which database did we choose?")
            if woken.status is WakeStatus.GAP:
                warn(woken.gaps)
        """

    @abstractmethod
    async def assemble(
        self,
        query: str,
        budget_tokens: int,
        *,
        limit: int | None = None,
        recent_limit: int = 40,
        facts_limit: int = 5,
        count_tokens: Callable[[ChatMessage], int] | None = None,
    ) -> Assembled:
        """Return the context for a model's next answer, in at most ``budget_tokens``.

        As many events are recalled as the budget may hold, at most 200 and at most ``limit``. They
        are chosen by rank, and shown in the order of time. ::

            context = await memory.assemble(question, budget_tokens=4000)
            answer = await model(context.messages)
        """
