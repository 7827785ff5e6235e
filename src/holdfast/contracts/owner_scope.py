"""The ids of an owner, as its callers write them and as they are stored."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from holdfast.spi.log_entry import LogEntry
from holdfast.values.checks import check_id, check_unreserved
from holdfast.values.errors import HoldfastError
from holdfast.values.events import Event, Session
from holdfast.values.identity import Agent, AgentId
from holdfast.values.owners import OWNED, RESERVED, MemoryScope, owned_id, split_owned
from holdfast.values.states import StateSnapshot

_QUOTES = "'\""
"""``repr`` shows an id that has both quotes with a backslash before the first kind."""


@dataclass(frozen=True, slots=True)
class OwnerScope:
    """Maps the ids of an owner: the caller's ``s1``, and the id under which an engine stores it.

    Without an owner both are the same.

    >>> scope = OwnerScope("ana")
    >>> scope.id("session_id", "s1"), scope.agent("planner")
    ('holdfast.owner:3:ana:s1', 'holdfast.owner:3:ana:planner')
    """

    owner: str
    memory: MemoryScope = "owner"
    is_confined: bool = False
    """Without an owner: whether it is limited to data without an owner."""

    def id(self, field: str, id: object) -> str:
        """Return the stored id of a session, a board or a channel. Errors name ``field``."""
        return owned_id(self.owner, self._checked(field, id))

    def known(self, field: str, id: object) -> str:
        """Return the stored id of an entity or a collection, which owners may share."""
        return owned_id(self.knower, self._checked(field, id))

    def _checked(self, field: str, id: object) -> str:
        """Check an id. In a view it must not be a stored id, which may be another owner's."""
        text = check_id(field, id)
        return check_unreserved(field, text) if self.owner or self.is_confined else text

    @property
    def knower(self) -> str:
        """The owner whose memories are used; ``""`` (the whole tenant) with shared memory."""
        return "" if self.memory == "shared" else self.owner

    def names(self) -> tuple[str, str]:
        """The prefix of the stored ids of an owner's memories, and a prefix to exclude."""
        return owned_id(self.knower, ""), "" if self.knower else OWNED

    def threads(self) -> tuple[str, str]:
        """The prefix of the stored ids of the owner's threads, and a prefix to exclude."""
        return owned_id(self.owner, ""), "" if self.owner else OWNED

    def recalled_session(self, session_id: object) -> str:
        """Return the stored id of a session.

        With shared memory, recall may have returned the stored id of another owner's session: it
        stays as it is.
        """
        session = check_id("session_id", session_id)
        shared = self.memory == "shared" and session.startswith(OWNED)
        return session if shared else self.id("session_id", session)

    def agent(self, agent_id: Agent) -> str:
        """Return the stored id of an agent; shared memory is stored under the agent's own name."""
        agent = str(AgentId.parse(agent_id))
        if self.owner or self.is_confined:
            # A caller must not pass the stored name of another owner's agent.
            check_unreserved("agent_id", agent)
        return owned_id(self.knower, agent)

    def entry(self, field: str, entry: LogEntry) -> LogEntry:
        """Return an entry of the session log under its stored ids."""
        if not self.owner and not self.is_confined:
            return entry
        return dataclasses.replace(
            entry,
            agent=self.agent(entry.agent),
            session=self.id(f"{field}.session_id", entry.session),
        )

    def event(self, field: str, event: Event) -> Event:
        """Return an event under its stored ids."""
        if not self.owner and not self.is_confined:
            return event
        return dataclasses.replace(
            event,
            agent_id=AgentId.parse(self.agent(event.agent_id)),
            session_id=self.id(f"{field}.session_id", event.session_id),
        )

    def owns(self, id: str) -> bool:
        """Return whether a stored id is the owner's; in a whole tenant every id is."""
        if self.is_confined:
            return not id.startswith(RESERVED)
        return id.startswith(owned_id(self.owner, ""))

    def owns_agent(self, agent: str) -> bool:
        """Return whether the owner writes under a stored id of an agent; a whole tenant under any.

        >>> OwnerScope("ana").owns_agent("holdfast.owner:3:bob:planner")
        False
        """
        if self.knower:
            return agent.startswith(owned_id(self.knower, ""))
        return not (self.owner or self.is_confined) or not agent.startswith(RESERVED)

    def own(self, id: str) -> str:
        """Return the caller's id for a stored one; an id of another owner stays as it is."""
        owner, own = split_owned(id)
        return own if owner == self.owner else id

    def own_text(self, text: str) -> str:
        """Replace stored ids in a text by the caller's, both plain and as ``repr`` shows them."""
        prefix = owned_id(self.owner, "")
        if OWNED in text:
            for shown in (
                prefix,
                repr(prefix)[1:-1],
                repr(prefix + _QUOTES)[1 : -len(_QUOTES) - 2],
            ):
                text = text.replace(shown, "")
        return text

    def own_error(self, error: HoldfastError) -> None:
        """Replace stored ids in an error by the caller's, in its text and its attributes."""
        error.args = tuple(
            self.own_text(one) if isinstance(one, str) else one for one in error.args
        )
        for name, value in vars(error).items():
            if isinstance(value, str):
                setattr(error, name, self.own_text(value))

    def own_state(self, snapshot: StateSnapshot) -> StateSnapshot:
        """Return a snapshot whose ``degraded`` text has the caller's ids."""
        if not self.owner or not snapshot.degraded:
            return snapshot
        return dataclasses.replace(snapshot, degraded=self.own_text(snapshot.degraded))

    def own_event(self, event: Event) -> Event:
        """Return a stored event under the caller's ids."""
        if not self.owner:
            return event
        return dataclasses.replace(
            event,
            agent_id=AgentId.parse(self.own(str(event.agent_id))),
            session_id=self.own(event.session_id),
        )

    def own_session(self, session: Session) -> Session:
        """Return a stored session under the caller's ids."""
        if not self.owner:
            return session
        return dataclasses.replace(
            session,
            id=self.own(session.id),
            agent_id=AgentId.parse(self.own(str(session.agent_id))),
            parent=None if session.parent is None else self.own(session.parent),
        )


NO_OWNER = OwnerScope("")
"""The scope of a whole tenant: ids stay as they are."""
