"""The ids of an owner, as its callers write them and as they are stored."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from holdfast.kernel.core.checks import check_id, check_unreserved
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.owners import OWNED, MemoryScope, owned_id, split_owned
from holdfast.kernel.storage.episodes import Event, Session
from holdfast.kernel.storage.short_term import StateSnapshot


@dataclass(frozen=True, slots=True)
class OwnerScope:
    """The ids of an owner: what a caller calls ``s1``, and what an engine stores it under.

    >>> scope = OwnerScope("ana")
    >>> scope.session("session_id", "s1"), str(scope.agent("planner"))
    ('holdfast.owner:3:ana:s1', 'holdfast.owner:3:ana:planner')
    """

    owner: str
    memory: MemoryScope = "owner"

    def session(self, field: str, session_id: object) -> str:
        """The stored id of a session; errors name ``field``."""
        return owned_id(self.owner, check_id(field, session_id))

    def recalled_session(self, session_id: str) -> str:
        """The same, for a session that a shared recall may have found at another owner."""
        if self.memory == "shared" and session_id.startswith(OWNED):
            return session_id
        return self.session("session_id", session_id)

    def agent(self, agent_id: AgentId | str) -> AgentId:
        """The stored id of an agent: shared memory is stored under the agent's own name."""
        agent = AgentId.parse(agent_id)
        if self.memory == "shared":
            # The stored name of another owner's agent must not be given here.
            check_unreserved("agent_id", str(agent))
            return agent
        return AgentId.parse(owned_id(self.owner, str(agent)))

    def event(self, field: str, event: Event) -> Event:
        """An event under its stored ids."""
        return dataclasses.replace(
            event,
            agent_id=self.agent(event.agent_id),
            session_id=self.session(f"{field}.session_id", event.session_id),
        )

    def own(self, id: str) -> str:
        """The caller's id for a stored one; an id of another owner stays as it is."""
        owner, own = split_owned(id)
        return own if owner == self.owner else id

    def own_text(self, text: str) -> str:
        """A text for the caller that names stored ids."""
        return text.replace(owned_id(self.owner, ""), "") if text else text

    def own_state(self, snapshot: StateSnapshot) -> StateSnapshot:
        """A snapshot whose problems name the caller's ids."""
        if not snapshot.degraded:
            return snapshot
        return dataclasses.replace(snapshot, degraded=self.own_text(snapshot.degraded))

    def own_event(self, event: Event) -> Event:
        """A stored event under the caller's ids."""
        return dataclasses.replace(
            event,
            agent_id=AgentId.parse(self.own(str(event.agent_id))),
            session_id=self.own(event.session_id),
        )

    def own_session(self, session: Session) -> Session:
        """A stored session under the caller's ids."""
        return dataclasses.replace(
            session,
            id=self.own(session.id),
            agent_id=AgentId.parse(self.own(str(session.agent_id))),
        )
