"""The ids of an owner, as its callers write them and as they are stored."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.kernel.core.checks import check_id, check_unreserved
from holdfast.kernel.core.errors import HoldfastError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.owners import OWNED, MemoryScope, owned_id, split_owned
from holdfast.kernel.storage.episodes import Event, Session
from holdfast.kernel.storage.short_term import StateSnapshot

C = TypeVar("C")
_QUOTES = "'\""
"""An id with both quotes is shown with a backslash before the first."""


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
        """A text for the caller that names stored ids, as they are or as ``repr`` shows them."""
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
        """Let an error name the caller's ids, in its text and in its attributes."""
        error.args = tuple(
            self.own_text(one) if isinstance(one, str) else one for one in error.args
        )
        for name, value in vars(error).items():
            if isinstance(value, str):
                setattr(error, name, self.own_text(value))

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


def names_own_ids(view: type[C]) -> type[C]:
    """A class whose coroutines have a ``_scope``: the errors they raise name the caller's ids.

    ::

        @names_own_ids
        class OwnedHistory(HistoryProvider): ...
    """
    for name, method in list(vars(view).items()):
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            setattr(view, name, _named(method))
    return view


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def called(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return await method(self, *args, **options)
        except HoldfastError as error:
            self._scope.own_error(error)
            raise

    return called
