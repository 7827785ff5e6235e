"""Whose events a statement reads: those of one agent, or of all agents."""

from __future__ import annotations

from typing import LiteralString

from holdfast.engines.postgres.payloads import PayloadPath
from holdfast.engines.postgres.queries import filled
from holdfast.spi.episodes import MAX_RECALLED_AGENTS, EventScope, SessionScope
from holdfast.values.filters import Filter
from holdfast.values.owners import RESERVED

_OF_AGENT = "/* whose */ e.agent = $2"
_OF_OWNER = "e.owner = $2 AND e.owner <> ''"
_OF_NOBODY = f"e.owner = $2 AND NOT starts_with(e.agent, '{RESERVED}')"
_BY_NOBODY = f"$3::text IS NULL AND NOT starts_with(e.agent, '{RESERVED}')"
_IN_SESSION = "/* whose */ e.agent = (SELECT $3::text)"
_AGENT = '/* whose */ SELECT $2::text COLLATE "C" AS agent'
_AGENTS = "SELECT agent FROM holdfast.agents_with_events($1, $2, $other, $most) AS agent"


def whose(sql: LiteralString, scope: EventScope) -> tuple[LiteralString, str | None]:
    """Return the statement for a scope, and its ``$2``: an agent, an owner, or ``None`` for all.

    A statement for one session does not filter by owner: the session is the owner's.

    >>> whose("SELECT … WHERE /* whose */ e.agent = $2", EventScope(None, owner="ana"))
    ("SELECT … WHERE e.owner = $2 AND e.owner <> ''", 'ana')
    """
    if scope.agent is not None:
        return sql, scope.agent
    if scope.owner == "":
        sql = filled(sql, {_IN_SESSION: _BY_NOBODY})
    if scope.owner is not None and _OF_AGENT in sql:
        # The index of owners contains only events that have an owner.
        return filled(sql, {_OF_AGENT: _OF_OWNER if scope.owner else _OF_NOBODY}), scope.owner
    return filled(sql, {_OF_AGENT: "$2::text IS NULL", _IN_SESSION: "$3::text IS NULL"}), None


def narrowed(sql: LiteralString, *filters: object) -> LiteralString:
    """Return a statement with those of its optional filters enabled that have a value.

    >>> narrowed("SELECT … WHERE (/* all */ TRUE) OR …", None)
    'SELECT … WHERE (/* all */ TRUE) OR …'
    """
    return sql if all(one is None for one in filters) else filled(sql, {"/* all */ TRUE": "FALSE"})


def metadata_filter(scope: SessionScope) -> tuple[str | None, str | None]:
    """Return the two parameters of a filter of sessions by their metadata, as ``payload_filter``.

    >>> metadata_filter(SessionScope("writer/ana"))
    (None, None)
    """
    return _filter(scope.where)


def payload_filter(scope: EventScope) -> tuple[str | None, str | None]:
    """Return the two parameters of a payload filter; both are ``None`` without a filter.

    >>> payload_filter(EventScope("writer/ana"))
    (None, None)
    """
    return _filter(scope.where)


def _filter(where: Filter | None) -> tuple[str | None, str | None]:
    if where is None:
        return None, None
    wanted = PayloadPath(where)
    return wanted.path, wanted.values


def searched(sql: LiteralString, scope: EventScope, last: int) -> tuple[LiteralString, list[str]]:
    """Return the search for a scope, with its parameters: the second, and any after ``last``.

    It returns one agent more than a search may cover, so that the caller can detect too many.

    >>> searched("WITH agents AS (/* whose */ SELECT $2 …)", EventScope("writer/ana"), 16)[1]
    ['writer/ana']
    """
    if scope.agent is not None:
        return sql, [scope.agent]
    most = str(MAX_RECALLED_AGENTS + 1)
    every = filled(_AGENTS, {"$other": f"${last + 1}", "$most": most})
    return filled(sql, {_AGENT: every}), list(scope.names)
