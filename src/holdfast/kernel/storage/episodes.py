"""The session log: everything that happened, in order, recalled by time and by meaning."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from holdfast.kernel.core.codec import message_from_payload, message_to_payload
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id

KNOWN_TYPES = ("message", "tool_call", "tool_result", "decision", "observation")
"""Types with a text of their own for recall; any other type is legal too."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a session.

    ``id`` is minted by the producer before the first try, so that a retry is the same event.
    ``epoch`` and ``seq`` are set by the store: together they are its place in the session's log.

    >>> Event(AgentId.parse("planner/a1"), "s1", "decision", {"use": "postgres"}).seq
    0
    """

    agent_id: AgentId
    session_id: str
    type: str
    payload: dict[str, Any]
    id: str = field(default_factory=new_id)
    run_id: str = ""
    occurred_at: datetime = field(default_factory=_utc_now)
    epoch: int = 0
    seq: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent_id", AgentId.parse(self.agent_id))

    @classmethod
    def of_message(
        cls, agent_id: AgentId, session_id: str, message: ChatMessage, *, run_id: str = ""
    ) -> Event:
        """A message as an event: what ``history.append`` writes.

        >>> Event.of_message(AgentId.parse("a1"), "s1", ChatMessage.user("hi")).type
        'message'
        """
        return cls(
            agent_id,
            session_id,
            "message",
            message_to_payload(message),
            id=message.id,
            run_id=run_id,
            occurred_at=message.created_at,
        )

    def to_message(self) -> ChatMessage:
        """The message in an event of type ``message``.

        >>> Event.of_message(AgentId.parse("a1"), "s1", ChatMessage.user("hi")).to_message().text
        'hi'
        """
        return message_from_payload(
            self.payload, id=self.id, created_at=self.occurred_at, seq=self.seq
        )


@dataclass(frozen=True, slots=True)
class Recalled:
    """An event that recall found, and why.

    ``score`` is in [0, 1]. ``found_by`` names the arms that found it (``lexical``, ``semantic``,
    ``recent``), ``scores`` what each arm gave it. ``degraded`` is empty, or says which arm could
    not answer.

    >>> event = Event(AgentId.parse("a1"), "s1", "decision", {"use": "postgres"})
    >>> Recalled(event, 1.0, ("lexical",), {"lexical": 2.3}).degraded
    ''
    """

    event: Event
    score: float
    found_by: tuple[str, ...]
    scores: dict[str, float]
    degraded: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation thread, and the agent that started it.

    >>> Session("s1", AgentId.parse("a1"), started_at=datetime(2030, 1, 1, tzinfo=UTC)).ended_at
    """

    id: str
    agent_id: AgentId
    started_at: datetime
    ended_at: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class EpisodicMemory(Protocol):
    """The ordered, append-only log of each session, one for all agents in it.

    A transcript is this log read with type ``message``: the same write serves both. The order in a
    session is (epoch, seq), never a clock; across sessions it is the time of occurrence.

    Promises:
    - an event comes back exactly as it was appended
    - append returns the events with their place in the log
    - seq is gap-free in the log of a session, whoever writes
    - a batch is contiguous in each of its sessions
    - order within a session is epoch and seq, never a clock
    - a batch is atomic: one bad event and none is stored
    - an empty batch does nothing
    - the same id and body again is a no-op that returns the first place
    - the same id with another body is a conflict and nothing is written
    - two equal events with different ids stay two
    - any type is legal
    - a message event is a message of the transcript
    - an appended message is an event of the log
    - a message event with a payload that is no message is refused
    - concurrent writers to one session leave no gap and lose nothing
    - recent returns the newest, ascending
    - recent of all sessions is ordered by time of occurrence
    - recent takes only the types asked for
    - an empty list of types is an empty result
    - a limit of zero is an empty result
    - a negative limit is an error that names it
    - one agent never sees anothers events
    - a tenant can neither read, write nor detect anothers events
    - an unknown agent or session is an empty result
    - between takes the start and leaves the end
    - between pages with after and misses nothing
    - a naive time is refused
    - recall finds what shares a word with the query
    - recall ranks the rarer word higher
    - recall finds other forms of a word
    - recall finds an event before any indexer could have seen it
    - the speaker's name is part of what is recalled
    - recall is by agent across sessions, or in one session
    - recall filters by type and by time
    - recall returns k results whenever k match
    - recall scores are between zero and one, best first, and name their arm
    - recall of a blank query returns the most recent
    - recall by vector finds the nearest
    - a vector of another dimension is an error that names both
    - a zero, infinite or NaN vector is refused
    - embeddings must be as many as the events
    - recall by vector without any vectors is empty
    - recall with an embedder finds by meaning what shares no word
    - an embedder that is down never loses a write, and recall says so
    - sessions are created on first use
    - start_session is idempotent and keeps what was started
    - a session that ended may be started again
    - end_session keeps the first end
    - ending an unknown session is a NotFoundError
    - sessions are listed newest first, in pages
    - clear removes the whole log of the session, and nothing of another
    - clear narrows by agent, run and types
    - clear is idempotent and says how many
    - clear of an empty run id is refused
    - cleared events are never recalled
    - sequence numbers are never reused after a clear
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - what was appended is there after reopening
    """

    @abstractmethod
    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Add events to the logs of their sessions, all or none; returns them with their place.

        ::

            [event] = await episodes.append([Event(agent, "s1", "decision", {"use": "postgres"})])
        """

    @abstractmethod
    async def recent(
        self,
        agent_id: AgentId,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
    ) -> list[Event]:
        """The newest events of an agent, ascending.

        ::

            window = await episodes.recent(agent, session_id="s1", limit=50)
        """

    @abstractmethod
    async def between(
        self,
        agent_id: AgentId,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = None,
        types: list[str] | None = None,
        limit: int = 1000,
        after: Event | None = None,
    ) -> list[Event]:
        """What an agent did from ``start`` until before ``end``; ``after`` is the last page's end.

        ::

            tuesday = await episodes.between(agent, start, start + timedelta(days=1))
        """

    @abstractmethod
    async def recall(
        self,
        agent_id: AgentId,
        query: str | list[float],
        *,
        limit: int = 5,
        session_id: str | None = None,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Recalled]:
        """The events nearest to a question, by words and, with an embedder, by meaning.

        ::

            hits = await episodes.recall(agent, "which database did we choose?")
        """

    @abstractmethod
    async def start_session(
        self,
        agent_id: AgentId,
        session_id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        """Begin a session, or take up one that is there; ``metadata`` replaces what it had.

        ::

            session = await episodes.start_session(agent, metadata={"channel": "mail"})
        """

    @abstractmethod
    async def end_session(self, session_id: str) -> Session:
        """Mark a session as ended; its log stays.

        ::

            await episodes.end_session(session.id)
        """

    @abstractmethod
    async def get_session(self, session_id: str) -> Session | None:
        """A session, or ``None``.

        ::

            session = await episodes.get_session("s1")
        """

    @abstractmethod
    async def list_sessions(
        self, agent_id: AgentId, *, limit: int = 50, after: Session | None = None
    ) -> list[Session]:
        """The sessions that an agent started, newest first; ``after`` is the last page's end.

        ::

            page = await episodes.list_sessions(agent, limit=10)
        """

    @abstractmethod
    async def clear(
        self,
        session_id: str,
        *,
        agent_id: AgentId | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Remove events of a session's log, narrowed by what is given; returns how many.

        ::

            removed = await episodes.clear("s1")
        """
