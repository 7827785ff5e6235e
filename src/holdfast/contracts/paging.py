"""Cursors of pages of events and of sessions."""

from __future__ import annotations

import re

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.values.cursors import decode_cursor
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event, Session
from holdfast.values.identity import AgentId

MAX_EPOCH = (1 << 31) - 1
"""The largest epoch that an engine stores."""

_NOBODY = AgentId("", "nobody")
"""A placeholder: a position in a log has no agent."""


def event_before(cursor: object, scope: OwnerScope) -> Event | None:
    """Return the position that a cursor of events stands for, with stored ids; or ``None``.

    >>> event_before(None, OwnerScope("")) is None
    True
    """
    if cursor is None:
        return None
    when, (session, epoch, seq) = decode_cursor(cursor, names=3)
    known = re.fullmatch(r"[0-9]{1,10}", epoch) and re.fullmatch(r"-?[0-9]{1,18}", seq)
    if not known or int(epoch) > MAX_EPOCH:
        raise InvalidInputError("cursor", "is not one that this listing returned")
    return Event(
        _NOBODY, scope.recalled_session(session), "", {}, "", "", when, int(epoch), int(seq)
    )


def session_before(
    cursor: object, scope: OwnerScope, *, by_activity: bool = False
) -> Session | None:
    """Return the position that a cursor of sessions stands for, with its stored id; or ``None``.

    >>> session_before(None, OwnerScope("")) is None
    True
    """
    if cursor is None:
        return None
    when, [session, *_] = decode_cursor(cursor, names=2 if by_activity else 1)
    stored = scope.id("cursor", session)
    return Session(stored, _NOBODY, when, last_active_at=when if by_activity else None)


def cursor_of_event(after: object) -> str | None:
    """Return the cursor of the event that was given as ``after``.

    >>> cursor_of_event(None) is None
    True
    """
    if after is None or isinstance(after, Event):
        return None if after is None else after.cursor
    raise InvalidInputError("after", "must be the last event of the previous page")


def cursor_of_session(after: object) -> str | None:
    """Return the cursor of the session that was given as ``after``.

    >>> cursor_of_session(None) is None
    True
    """
    if after is None or isinstance(after, Session):
        return None if after is None else after.cursor
    raise InvalidInputError("after", "must be the last session of the previous page")
