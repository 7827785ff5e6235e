"""Whose data an erasure deletes, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdfast.values.owners import owned_id, split_owned

ErasureKind: TypeAlias = Literal["tenant", "subject", "agent", "session"]
"""What a scope names. The subject of data is its owner, or whom it names instead."""

Counts: TypeAlias = dict[str, int]
"""Number of records by store; stores without any are left out."""


@dataclass(frozen=True, slots=True)
class ErasureScope:
    """Whose data to delete: a tenant, a subject, an agent or a session. Ids are stored ids.

    >>> ErasureScope("subject", "ana").has_owner("ana")
    True
    """

    kind: ErasureKind
    id: str
    sessions: frozenset[str] = field(default=frozenset(), repr=False)
    """For a subject: the sessions of others that are about it, also deleted ones."""

    def has_id(self, stored: str) -> bool:
        """Return whether a stored id is in scope by its owner; for a tenant, every id is.

        >>> ErasureScope("subject", "ana").has_id("holdfast.owner:3:ana:notes")
        True
        """
        return self.kind == "tenant" or (
            self.kind == "subject" and stored.startswith(owned_id(self.id, ""))
        )

    def is_about(self, subject: str) -> bool:
        """Return whether a record that names this subject is in scope.

        >>> ErasureScope("subject", "ana").is_about("ana")
        True
        """
        return self.kind == "subject" and subject == self.id

    def has_session(self, stored: str) -> bool:
        """Return whether everything under the stored id of a session is in scope."""
        return (
            self.has_id(stored)
            or (self.kind == "session" and stored == self.id)
            or stored in self.sessions
        )

    def has_agent(self, stored: str) -> bool:
        """Return whether everything of an agent is in scope."""
        return self.has_id(stored) or (self.kind == "agent" and stored == self.id)

    def has_owner(self, owner: str) -> bool:
        """Return whether everything of an owner is in scope."""
        return self.kind == "tenant" or (self.kind == "subject" and owner == self.id)

    def has_board(self, conversation: str, agent: str) -> bool:
        """Return whether a board is in scope; the agent is not a stored id."""
        owner, _ = split_owned(conversation)
        return self.has_session(conversation) or (
            self.kind == "agent" and owned_id(owner, agent) == self.id
        )

    def has_task(self, owner: str, session_id: str, agent: str) -> bool:
        """Return whether a task or a schedule is in scope; its ids are not stored ids."""
        return (
            self.has_owner(owner)
            or (self.kind == "agent" and owned_id(owner, agent) == self.id)
            or (self.kind == "session" and owned_id(owner, session_id) == self.id)
            or (bool(self.sessions) and owned_id(owner, session_id) in self.sessions)
        )


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What an erasure found and, unless it was a dry run, its receipt.

    >>> ErasureReport({"tasks": 2}).receipt is None
    True
    """

    counts: Counts
    """Number of records by store, before anything was deleted."""

    receipt: dict[str, Any] | None = None
    """The receipt as JSON: see ``holdfast erase verify``."""


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """A stored erasure. When it is finished, whose data it deleted is no longer stored.

    >>> from datetime import UTC
    >>> ErasureRecord("e1", "subject", "ana", datetime(2026, 1, 1, tzinfo=UTC)).finished
    False
    """

    id: str
    kind: ErasureKind
    scope_id: str
    """Whose data it deletes, as a stored id; empty once it is finished."""

    started_at: datetime
    counts: Counts = field(default_factory=dict)
    """Number of records by store when it began."""

    number: int = 0
    """Its number in the chain of receipts; 0 until it is finished."""

    finished_at: datetime | None = None
    receipt: dict[str, Any] | None = None
    data_keys: tuple[int, ...] = ()
    """The numbers of the data keys that it destroyed."""

    @property
    def finished(self) -> bool:
        """Whether all data of the scope are deleted."""
        return self.number > 0
