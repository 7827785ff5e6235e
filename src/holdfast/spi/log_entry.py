"""A checked event, to be stored in a session log: its payload is the codec's text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self, TypeVar

from holdfast.values.checks import (
    check_id,
    check_list,
    check_optional_count,
    check_optional_id,
    check_time,
    check_vector,
)
from holdfast.values.codec import (
    decode_json,
    encode_json,
    encode_object,
    message_to_payload,
)
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import CodecError, ConflictError, InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.stored_messages import MessageRow, message_from_body


@dataclass(slots=True)
class LogEntry:
    """What an engine stores for an event, before it has a position.

    >>> LogEntry.of_event("event", Event(AgentId.parse("a1"), "s1", "note", {"b": 1})).body
    '{"b":1}'
    """

    agent: str
    session: str
    type: str
    body: str
    id: str
    run: str
    occurred_at: datetime

    @classmethod
    def of_event(cls, field: str, event: object) -> Self:
        """Return the entry of a checked event. Errors name ``field``."""
        if not isinstance(event, Event):
            raise InvalidInputError(field, f"must be an Event, not {type(event).__name__}")
        entry = cls(
            agent=str(AgentId.parse(event.agent_id)),
            session=check_id(f"{field}.session_id", event.session_id),
            type=check_id(f"{field}.type", event.type),
            body=encode_object(event.payload, field=f"{field}.payload"),
            id=check_id(f"{field}.id", event.id),
            run=check_optional_id(f"{field}.run_id", event.run_id),
            occurred_at=check_time(f"{field}.occurred_at", event.occurred_at),
        )
        if entry.type == "message":
            entry.check_message(f"{field}.payload")
        return entry

    @classmethod
    def of_message(
        cls, field: str, message: ChatMessage, *, agent: str, session: str, run: str
    ) -> Self:
        """Return the entry of a checked transcript message. Errors name ``field``."""
        body = _text_body(field, message)
        if body is None:
            body = encode_json(message_to_payload(message, field=field), field=field)
        when = check_time(f"{field}.created_at", message.created_at)
        return cls(agent, session, "message", body, message.id, run, when)

    def check_message(self, field: str) -> None:
        """Raise an error that names ``field`` if the body is not a message."""
        try:
            message_from_body(self.body, id=self.id, created_at=self.occurred_at)
        except CodecError as error:
            raise InvalidInputError(
                field, f"{error}: pass a ChatMessage, or Event.of_message(…) for an event"
            ) from error

    @property
    def key(self) -> str:
        """The session and the id, joined by a NUL, which no id has: unique within the tenant."""
        return f"{self.session}\x00{self.id}"

    def content(self) -> tuple[str, ...]:
        """Return the fields by which a second event with the same id is a retry: all but the time.

        The time is left out because a caller that rebuilds an event for a retry gives it another
        time. The SQL functions and Lua scripts compare the same four values.
        """
        return (self.agent, self.type, self.run, self.body)

    def check_same(self, other: LogEntry) -> None:
        """Raise ``ConflictError`` if ``other``, which has the same id, has another content."""
        if self.content() != other.content():
            raise another_body(self.session, self.id)

    def to_row(self, seq: int) -> MessageRow:
        """Return the entry as the transcript row that an engine returns."""
        return (self.body, self.id, self.occurred_at, seq)

    def to_event(self, epoch: int, seq: int) -> Event:
        """Return a new event at its position, which the caller owns."""
        return Event(
            agent_id=AgentId.parse(self.agent),
            session_id=self.session,
            type=self.type,
            payload=decode_json(self.body),
            id=self.id,
            run_id=self.run,
            occurred_at=self.occurred_at,
            epoch=epoch,
            seq=seq,
        )


def _text_body(field: str, message: object) -> str | None:
    """Return the body of a message that is one text block, else ``None``: a fast path."""
    if type(message) is not ChatMessage or message.name or message.metadata != {}:
        return None
    content = message.content
    if len(content) != 1 or type(content[0]) is not TextBlock:
        return None
    text = encode_json(content[0].text, field=f"{field}.content[0].text")
    if text[0] != '"':
        return None
    role = str.__str__(message.role)  # of an enum, the value
    return f'{{"v":1,"role":"{role}","content":[{{"type":"text","text":{text}}}]}}'


E = TypeVar("E", bound=LogEntry)


def another_body(session: str, id: str) -> ConflictError:
    """Return the error of a second event under a known id.

    >>> another_body("s1", "e1").key
    'e1'
    """
    return ConflictError(
        "event",
        id,
        f"event {id!r} is already in session {session!r} with another body: "
        "use a new id for a new event",
    )


def distinct(entries: Iterable[E]) -> dict[str, E]:
    """Return entries by key, each once. Raises ``ConflictError`` if an id has two bodies.

    >>> distinct([])
    {}
    """
    found: dict[str, E] = {}
    for entry in entries:
        first = found.setdefault(entry.key, entry)
        if first is not entry:
            first.check_same(entry)
    return found


def check_embeddings(embeddings: object, count: int) -> list[list[float]] | None:
    """Check the vectors of ``count`` events, one for each. ``None`` stays ``None``.

    >>> check_embeddings([[3, 4]], 1)
    [[3.0, 4.0]]
    """
    if embeddings is None:
        return None
    vectors = check_list("embeddings", embeddings)
    if len(vectors) != count:
        raise InvalidInputError(
            "embeddings",
            f"must be one for each event: {count} events, {len(vectors)} embeddings",
        )
    found: list[list[float]] = []
    for at, vector in enumerate(vectors):
        dimension = len(found[0]) if found else None
        found.append(check_vector(f"embeddings[{at}]", vector, dimension=dimension))
    return found


class TranscriptPage(NamedTuple):
    """A checked request for a part of a transcript.

    >>> TranscriptPage.of(limit=None, offset=2, recent_limit=None, after_seq=None).offset
    2
    """

    limit: int | None
    offset: int
    last: int | None
    after_seq: int | None

    @classmethod
    def of(
        cls,
        *,
        limit: int | None,
        offset: int | None,
        recent_limit: int | None,
        after_seq: int | None,
    ) -> Self:
        """Check the bounds; ``recent_limit`` cannot be combined with the others."""
        page = cls(
            check_optional_count("limit", limit),
            check_optional_count("offset", offset) or 0,
            check_optional_count("recent_limit", recent_limit),
            check_optional_count("after_seq", after_seq),
        )
        if recent_limit is not None and (limit is not None or page.offset or after_seq is not None):
            raise InvalidInputError(
                "recent_limit", "cannot be combined with limit, offset or after_seq"
            )
        return page
