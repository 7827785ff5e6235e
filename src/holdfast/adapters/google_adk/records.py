"""What a session of ADK consists of in Holdfast: its names, its log, and its three states."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.adk.sessions.state import State as Scope

from holdfast.adapters.keys import key_of, short_id_of
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event as LogEvent
from holdfast.values.identity import AgentId
from holdfast.values.states import StatePatch, StateSnapshot

EVENT = "adk.event"
_HEAD = "temp:holdfast"
"""The key of a session's head in its state. ADK never stores a key that begins with ``temp:``."""


class SessionName(NamedTuple):
    """What identifies a session."""

    app: str
    user: str
    session: str

    @property
    def agent(self) -> AgentId:
        """The agent whose log has the events."""
        return agent_of(self.app, self.user)

    @property
    def states(self) -> list[str]:
        """The ids of the states of the session, the user and the app."""
        own = key_of("adk", "session", *self)
        return [own, key_of("adk", "user", self.app, self.user), key_of("adk", "app", self.app)]

    @property
    def digest(self) -> str:
        """A text to filter logs by."""
        return digest_of("session", *self)


@dataclass(frozen=True, slots=True)
class Head:
    """Which log a session has, and what was last written to it."""

    log: str
    seq: int
    updated: float
    event: str


@dataclass(frozen=True, slots=True)
class Marker:
    """Which state of a session an object has, in the field that ADK has for it.

    Each write to a session increments ``seq``, and gives its state another version.
    """

    log: str
    seq: int

    @classmethod
    def of(cls, session: Session) -> Marker | None:
        """Return the marker of a session object, or ``None``."""
        text = session._storage_update_marker  # noqa: SLF001 - ADK's services share it
        return None if text is None else cls(**json.loads(text))

    def put_on(self, session: Session) -> None:
        """Set the marker of a session object."""
        session._storage_update_marker = json.dumps(asdict(self))  # noqa: SLF001 - likewise


def agent_of(app: str, user: str) -> AgentId:
    """Return the agent whose log has the events of a user of an app: recall over it finds them.

    >>> str(agent_of("tides", "ana"))
    '["adk","tides","ana"]'
    """
    return AgentId.parse(key_of("adk", app, user))


def digest_of(*parts: str) -> str:
    """Return a short text for any texts, for filters and labels, which are limited in length."""
    return hashlib.sha256(key_of(*parts).encode()).hexdigest()


def head_of(own: StateSnapshot) -> Head:
    """Return the head of a session that exists."""
    return Head(**own.state[_HEAD])


def session_of(
    name: SessionName, head: Head, own: dict[str, Any], user: dict[str, Any], app: dict[str, Any]
) -> Session:
    """Return a session of ADK, without events, with the states of all three scopes."""
    state = {key: value for key, value in own.items() if key != _HEAD}
    state |= {Scope.APP_PREFIX + key: value for key, value in app.items()}
    state |= {Scope.USER_PREFIX + key: value for key, value in user.items()}
    return Session(
        app_name=name.app,
        user_id=name.user,
        id=name.session,
        state=state,
        last_update_time=head.updated,
    )


def patches_of(
    name: SessionName, deltas: dict[str, dict[str, Any]], head: Head, version: int
) -> list[StatePatch]:
    """Return the patches of a write to a session that is at this version."""
    own, user, app = name.states
    patch = {**deltas["session"], _HEAD: asdict(head)}
    found = [StatePatch(own, patch, expected_version=version)]
    found += [StatePatch(user, deltas["user"])] if deltas["user"] else []
    return found + ([StatePatch(app, deltas["app"])] if deltas["app"] else [])


def row_of(name: SessionName, log: str, event: Event) -> LogEvent:
    """Return the stored form of an event."""
    return LogEvent(
        name.agent,
        log,
        EVENT,
        {"event": event.model_dump(exclude_none=True, mode="json")},
        id=short_id_of(event.id),
        run_id=short_id_of(event.invocation_id) if event.invocation_id else "",
        occurred_at=time_of("event.timestamp", event.timestamp),
    )


def event_of(payload: dict[str, Any]) -> Event:
    """Return the event of a payload that ``row_of`` made."""
    # As JSON, since bytes are base64 only there.
    return Event.model_validate_json(msgspec.json.encode(payload["event"]))


def time_of(field: str, timestamp: float) -> datetime:
    """Return a timestamp as a time. Errors name ``field``."""
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInputError(field, f"must be seconds since 1970, not {timestamp!r}") from None
