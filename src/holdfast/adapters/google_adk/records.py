"""How a session of ADK is stored in Holdfast: its names, its log, and its three states."""

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
"""The key of a session's ``Head`` in its state. ADK never stores keys that begin with ``temp:``."""


class SessionName(NamedTuple):
    """The names that identify a session."""

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
        """A short text by which logs are filtered."""
        return digest_of("session", *self)


@dataclass(frozen=True, slots=True)
class Head:
    """Which log holds the events of a session, and what was written to it last."""

    log: str
    seq: int
    updated: float
    event: str


@dataclass(frozen=True, slots=True)
class Marker:
    """Which version of a session a session object was read at, in a field that ADK reserves for it.

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
    """Return a digest of any texts, for filters and labels, whose length is limited."""
    return hashlib.sha256(key_of(*parts).encode()).hexdigest()


def head_of(own: StateSnapshot) -> Head:
    """Return the head of a session, from the state of an existing session."""
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
    """Return the state patches of a write to a session that has this version."""
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
