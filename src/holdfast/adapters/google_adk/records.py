"""How a session of ADK is stored in Holdfast: its names, its log, and its three states."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from google.adk.events.event import Event
from google.adk.sessions._session_util import extract_json_safe_state_delta
from google.adk.sessions.session import Session
from google.adk.sessions.state import State as Scope

from holdfast.adapters.keys import key_of, short_id_of
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event as LogEvent
from holdfast.values.identity import AgentId
from holdfast.values.states import StatePatch, StateSnapshot

EVENT = "adk.event"
OWN_KEY = "temp:holdfast"
"""The key of a session's ``Head`` in its state, and of ``applied`` in the states of users and apps.
ADK never stores keys that begin with ``temp:``."""

_MAX_APPLIED = 100


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
class Pending:
    """The rest of a write to a session, to be done in stores other than that of its state."""

    event: dict[str, Any] | None
    """The event to append, as JSON values; ``None`` when a session is created."""
    user: dict[str, Any]
    app: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """Which log holds the events of a session, and what was written to it last."""

    log: str
    seq: int
    updated: float
    event: str
    pending: Pending | None = None
    """Only where events and states are in different stores: see ``two_stores``."""

    @property
    def event_id(self) -> str:
        """The id of the last event in the log."""
        return short_id_of(self.event)

    def to_json(self) -> dict[str, Any]:
        """Return the head as JSON values, from which ``head_of`` reads it."""
        found = {"log": self.log, "seq": self.seq, "updated": self.updated, "event": self.event}
        if self.pending is None:
            return found
        one = self.pending
        return found | {"pending": {"event": one.event, "user": one.user, "app": one.app}}


@dataclass(frozen=True, slots=True)
class Marker:
    """The version at which a session object was read, stored in a field that ADK reserves for this.

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
        session._storage_update_marker = json.dumps({"log": self.log, "seq": self.seq})  # noqa: SLF001


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
    stored = dict(own.state[OWN_KEY])
    pending = stored.pop("pending", None)
    return Head(**stored, pending=None if pending is None else Pending(**pending))


def deltas_of(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the changes of a write to the states of the session, the user and the app.

    Keys of users and apps may have any text after their prefix, so those that begin like the key
    of the service are stored with one character more.

    >>> deltas_of({"n": 1, "user:temp:holdfast": 2})["user"]
    {'temp:holdfast=': 2}
    """
    found: dict[str, dict[str, Any]] = extract_json_safe_state_delta(state)
    for scope in ("user", "app"):
        found[scope] = {
            f"{key}=" if key.startswith(OWN_KEY) else key: value
            for key, value in found[scope].items()
        }
    return found


def plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return a stored state as its user wrote it, without the key of the service.

    >>> plain({"n": 1, "temp:holdfast": {}, "temp:holdfast=": 2})
    {'n': 1, 'temp:holdfast': 2}
    """
    return {
        key[:-1] if key.startswith(OWN_KEY) else key: value
        for key, value in state.items()
        if key != OWN_KEY
    }


def was_applied(state: dict[str, Any], head: Head) -> bool:
    """Return whether the state of a user or an app has the changes of a write to a session."""
    return bool(state.get(OWN_KEY, {}).get(head.log, -1) >= head.seq)


def applied(state: dict[str, Any], head: Head) -> dict[str, Any]:
    """Return the patch that records that a write to a session was applied to this state.

    It keeps the last write of each of the sessions that wrote most recently, by their logs.
    """
    others = {log: seq for log, seq in state.get(OWN_KEY, {}).items() if log != head.log}
    return {OWN_KEY: dict([*others.items(), (head.log, head.seq)][-_MAX_APPLIED:])}


def session_of(
    name: SessionName, head: Head, own: dict[str, Any], user: dict[str, Any], app: dict[str, Any]
) -> Session:
    """Return a session of ADK, without events, with the states of all three scopes."""
    state = plain(own)
    state |= {Scope.APP_PREFIX + key: value for key, value in plain(app).items()}
    state |= {Scope.USER_PREFIX + key: value for key, value in plain(user).items()}
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
    patch = {**deltas["session"], OWN_KEY: head.to_json()}
    found = [StatePatch(own, patch, expected_version=version)]
    found += [StatePatch(user, deltas["user"])] if deltas["user"] else []
    return found + ([StatePatch(app, deltas["app"])] if deltas["app"] else [])


def dumped(event: Event) -> dict[str, Any]:
    """Return an event as JSON values."""
    found: dict[str, Any] = event.model_dump(exclude_none=True, mode="json")
    return found


def row_of(name: SessionName, log: str, event: dict[str, Any]) -> LogEvent:
    """Return the stored form of an event that was ``dumped``."""
    return LogEvent(
        name.agent,
        log,
        EVENT,
        {"event": event},
        id=short_id_of(event["id"]),
        run_id=short_id_of(event["invocation_id"]) if event["invocation_id"] else "",
        occurred_at=time_of("event.timestamp", event["timestamp"]),
    )


def is_row(row: LogEvent) -> bool:
    """Return whether ``row_of`` made an event of a log: others may write to the log too."""
    event = row.payload.get("event")
    return (
        isinstance(event, dict)
        and isinstance(event.get("id"), str)
        and (row.id == short_id_of(event["id"]))
    )


def time_of(field: str, timestamp: float) -> datetime:
    """Return a timestamp as a time. Errors name ``field``."""
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInputError(field, f"must be seconds since 1970, not {timestamp!r}") from None
