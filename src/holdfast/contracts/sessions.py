"""The sessions of a log: started, ended, and listed with or without their working states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from holdfast.contracts.event_log import Events
from holdfast.contracts.paging import cursor_of_session, session_before
from holdfast.spi.episodes import EpisodeStorage, NamedStates, SessionScope, no_states
from holdfast.spi.id_page import IdPage
from holdfast.values.checks import check_count, check_id, check_subject
from holdfast.values.codec import encode_object
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.events import Session
from holdfast.values.identity import ALL_AGENTS, Agent, AgentId, AnyAgent
from holdfast.values.ids import new_id
from holdfast.values.states import StateSnapshot

SessionOrder: TypeAlias = Literal["started_at", "last_active_at"]
"""The time that sessions are sorted by."""

ORDERS: tuple[str, ...] = get_args(SessionOrder)


class Sessions(Events):
    """The part of ``EpisodicMemory`` that starts, ends and lists sessions.

    ::

        session = await state.episodes.start_session(agent)
    """

    def __init__(
        self,
        storage: EpisodeStorage,
        *,
        state_ttl_seconds: float | None = None,
        state_versions: int = 0,
    ) -> None:
        super().__init__(
            storage, state_ttl_seconds=state_ttl_seconds, state_versions=state_versions
        )
        self._storage = storage

    def add_layer(self, layer: Callable[[Any], Any]) -> None:
        """Wrap the engine's storage in a layer, such as encryption."""
        super().add_layer(layer)
        self._events = self._storage

    async def start_session(
        self,
        agent_id: Agent,
        session_id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        subject: str | None = None,
    ) -> Session:
        """Start a session, or reopen an existing one; ``metadata`` replaces its metadata.

        ``subject`` is the id of the person whom it is about, if that is not its owner:
        ``state.erase(subject=)`` deletes it with all that is stored under its id. Raises
        ``ConflictError`` if the session exists with another subject or with none. A deleted session
        keeps its subject, because other data may still be stored under its id. ::

            session = await episodes.start_session(agent, metadata={"channel": "mail"})
            about = await episodes.start_session(agent, "s1", subject="ana")
        """
        agent = self._scope.agent(agent_id)
        name = new_id() if session_id is None else session_id
        session = self._scope.id("session_id", name)
        text = None if metadata is None else encode_object(metadata, field="metadata")
        self._limits.check_value("metadata", text or "")
        # Engines without subjects do not have the fourth argument.
        about = () if subject is None else (check_subject(subject),)
        return self._scope.own_session(
            await self._storage.start_session(session, agent, text, *about)
        )

    async def end_session(self, session_id: str) -> Session:
        """Mark a session as ended; its log stays.

        ::

            await episodes.end_session(session.id)
        """
        found = await self._storage.end_session(self._scope.id("session_id", session_id))
        if found is None:
            raise NotFoundError("session", session_id)
        return self._scope.own_session(found)

    async def get_session(self, session_id: str) -> Session | None:
        """Return a session, or ``None``.

        ::

            session = await episodes.get_session("s1")
        """
        found = await self._storage.get_session(self._scope.id("session_id", session_id))
        return None if found is None else self._scope.own_session(found)

    @renamed(after=("cursor", cursor_of_session))
    async def list_sessions(
        self,
        agent_id: AnyAgent,
        *,
        limit: int = 50,
        cursor: str | None = None,
        where: dict[str, Any] | None = None,
        by: SessionOrder = "started_at",
    ) -> list[Session]:
        """Return the sessions that an agent started, or those of ``ALL_AGENTS``, newest first.

        ``by="last_active_at"`` sorts by the time of the newest event, which each session then has.
        ``where`` filters by the scalars at the top level of the metadata. ``cursor`` is that of
        the last session of the previous page, in the same order. ::

            page = await episodes.list_sessions(agent, limit=10)
            more = await episodes.list_sessions(agent, limit=10, cursor=page[-1].cursor)
            mail = await episodes.list_sessions(
                ALL_AGENTS, by="last_active_at", where={"channel": "mail"}
            )
        """
        limit = check_count("limit", limit)
        if by not in ORDERS:
            raise InvalidInputError("by", f"must be one of {', '.join(ORDERS)}, not {by!r}")
        scope = self._sessions_of(agent_id, where, by_activity=by == "last_active_at")
        after = session_before(cursor, self._scope, by_activity=scope.by_activity)
        found: list[Session] = []
        while True:
            page = await self._storage.list_sessions(scope, limit, after)
            # Shared memory is stored under the agent's own name, so leave out sessions of other
            # owners.
            found += [self._scope.own_session(one) for one in page if self._scope.owns(one.id)]
            if len(page) < limit or len(found) >= limit:
                return found[:limit]
            after = page[-1]

    async def list_sessions_with_states(
        self,
        agent_id: AnyAgent,
        *,
        key: str = "states",
        limit: int = 50,
        cursor: str | None = None,
        where: dict[str, Any] | None = None,
    ) -> tuple[list[Session], dict[str, StateSnapshot]]:
        """Return sessions as ``list_sessions`` does, and the working states that they name.

        ``key`` is the key of their metadata that has the list of ids of states. Both are read in
        one round trip, and each state once, by its id; there is no entry where there is no state.
        Raises ``NotSupportedError`` where events and states are in different stores, and where
        metadata is encrypted: list the sessions, then call ``short_term.get_many``. ::

            await episodes.start_session(agent, "s1", metadata={"states": ["s1", "user:ana"]})
            page, states = await episodes.list_sessions_with_states(agent)
            for session in page:
                print(session.id, [states[one].state for one in session.metadata["states"]])
        """
        limit = check_count("limit", limit)
        name = check_id("key", key)
        scope = self._sessions_of(agent_id, where, by_activity=False)
        after = session_before(cursor, self._scope)
        named = NamedStates(name, self._scope.threads()[0])
        if self._states_in:
            raise no_states(self._states_in)
        found: list[Session] = []
        states: dict[str, StateSnapshot] = {}
        while True:
            page, more = await self._storage.list_sessions_with_states(scope, limit, after, named)
            own = [self._scope.own_session(one) for one in page if self._scope.owns(one.id)]
            found += own
            states |= {
                self._scope.own(one): self._scope.own_state(state)
                for one, state in more.items()
                if self._scope.owns(one)
            }
            if len(page) < limit or len(found) >= limit:
                break
            after = page[-1]
        wanted = {one for session in found[:limit] for one in named.of(session)}
        return found[:limit], {one: state for one, state in states.items() if one in wanted}

    async def list_agents(self, *, limit: int = 100, after: Agent | None = None) -> list[AgentId]:
        """Return the agents that have events, in order of their names.

        ``after`` is the last one of the previous page. ::

            for agent in await episodes.list_agents():
                print(agent)
        """
        count = check_count("limit", limit)
        last = "" if after is None else self._scope.known("after", str(AgentId.parse(after)))
        page = IdPage(*self._events_of(ALL_AGENTS, None, None, None).names, last, count)
        found = await self._storage.agents(page) if count else []
        return [AgentId.parse(self._scope.own(one)) for one in found]

    def _sessions_of(
        self, agent_id: AnyAgent, where: dict[str, Any] | None, *, by_activity: bool
    ) -> SessionScope:
        events = self._events_of(agent_id, None, None, where)
        return SessionScope(events.agent, events.where, events.owner, by_activity=by_activity)
