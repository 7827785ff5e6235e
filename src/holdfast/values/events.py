"""The session log: everything that happened, in order, recalled by time and by meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast.values.codec import message_from_payload, message_to_payload
from holdfast.values.content import ChatMessage
from holdfast.values.cursors import encode_cursor
from holdfast.values.explanations import Explanation
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id

KNOWN_TYPES = ("message", "tool_call", "tool_result", "decision", "observation")
"""Types that recall converts to text in a special way; other types are allowed, too."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a session.

    The producer creates ``id`` before the first attempt, so that a retry has the same id.
    ``epoch`` and ``seq`` are set by the store: together they are its position in the session's log.

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
        """Return a message as an event, as ``history.append`` writes it.

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

    @property
    def cursor(self) -> str:
        """The cursor of a page that ends with this event, for ``between``. Opaque."""
        return encode_cursor(self.occurred_at, self.session_id, str(self.epoch), str(self.seq))

    def to_message(self) -> ChatMessage:
        """Return the message in an event of type ``message``.

        >>> Event.of_message(AgentId.parse("a1"), "s1", ChatMessage.user("hi")).to_message().text
        'hi'
        """
        return message_from_payload(
            self.payload, id=self.id, created_at=self.occurred_at, seq=self.seq
        )


@dataclass(frozen=True, slots=True)
class Recalled:
    """An event that recall found, and why.

    ``score`` is in [0, 1]. ``found_by`` names the parts of the search (arms) that found it:
    ``lexical``, ``semantic`` or ``recent``; and ``answer`` if words of the query are only in the
    question that the event answers. ``scores`` has the score of each arm, and what the rules
    ``speaker``, ``session`` and ``near`` added. ``degraded`` is empty, or names the arm that
    failed. ``explanation`` is ``None`` unless the search was asked to explain.

    >>> event = Event(AgentId.parse("a1"), "s1", "decision", {"use": "postgres"})
    >>> Recalled(event, 1.0, ("lexical",), {"lexical": 2.3}).degraded
    ''
    """

    event: Event
    score: float
    found_by: tuple[str, ...]
    scores: dict[str, float]
    degraded: str = ""
    explanation: Explanation | None = None


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
    last_active_at: datetime | None = None
    """When its newest event occurred, or when it started if it has none. ``None`` unless the
    session was listed with ``by="last_active_at"``."""
    parent: str | None = None
    """The session that it was forked from."""
    parent_at: int | None = None
    """The ``seq`` up to which the log of its parent was copied."""
    subject: str = ""
    """Whom it is about, if not its owner."""

    @property
    def cursor(self) -> str:
        """The cursor of a page that ends with this session, for ``list_sessions``. Opaque."""
        if self.last_active_at is not None:
            return encode_cursor(self.last_active_at, self.id, "active")
        return encode_cursor(self.started_at, self.id)
