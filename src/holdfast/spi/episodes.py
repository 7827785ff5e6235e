"""Session logs, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.id_page import IdPage
from holdfast.spi.log_entry import LogEntry
from holdfast.values.codec import decode_json
from holdfast.values.errors import ConflictError, InvalidInputError, NotSupportedError
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.filters import Filter, matches
from holdfast.values.owners import RESERVED, split_owned
from holdfast.values.payload_filters import filterable
from holdfast.values.states import ExpectedWrite, Patched, StateSnapshot


@dataclass(frozen=True, slots=True)
class EventScope:
    """Which events of which agent; ``None`` means no condition.

    Without an agent it covers all agents: in the whole tenant, in the sessions of one owner, or in
    the sessions without an owner. ``session`` is one of these sessions.

    >>> EventScope("writer/ana", "s1").types
    """

    agent: str | None
    session: str | None = None
    types: list[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Events before this time."""

    where: Filter | None = None
    """The filter on the payloads of events (``holdfast.values.payload_filters``)."""

    owner: str | None = None
    """The owner of the sessions, if there is no agent; empty for sessions without an owner."""

    names: tuple[str, str] = ("", "")
    """Without an agent: the prefixes of agents to include and to exclude; empty excludes none."""

    def has_agent(self, agent: str) -> bool:
        """Return whether the scope can include events of this agent."""
        if self.agent is not None:
            return agent == self.agent
        begin, other = self.names
        return agent.startswith(begin) and not (other and agent.startswith(other))

    def has(self, entry: LogEntry) -> bool:
        """Return whether the scope includes this event."""
        return (
            (self.agent is None or entry.agent == self.agent)
            and (self.agent is not None or self._has_owner(entry))
            and (self.session is None or entry.session == self.session)
            and (self.types is None or entry.type in self.types)
            and (self.since is None or entry.occurred_at >= self.since)
            and (self.until is None or entry.occurred_at < self.until)
            and (self.where is None or matches(self.where, filterable(decode_json(entry.body))))
        )

    def _has_owner(self, entry: LogEntry) -> bool:
        if self.owner is None:
            return True
        # An agent without an owner has no reserved name. Agents with one belong to an owner, or
        # wait for one to be assigned.
        mine = bool(self.owner) or self.has_agent(entry.agent)
        return mine and split_owned(entry.session)[0] == self.owner


@dataclass(frozen=True, slots=True)
class SessionScope:
    """Which sessions: those that an agent started, or those of all agents.

    >>> SessionScope("writer/ana").by_activity
    False
    """

    agent: str | None
    where: Filter | None = None
    """The filter on the metadata of sessions (``holdfast.values.payload_filters``)."""

    owner: str | None = None
    """The owner of the sessions, if there is no agent; empty for sessions without an owner."""

    by_activity: bool = False
    """Whether sessions are ordered by the time of their newest event, not by their start."""

    def has(self, session: str, agent: str, metadata: str) -> bool:
        """Return whether the scope includes this session."""
        if self.where is not None and not matches(self.where, filterable(decode_json(metadata))):
            return False
        if self.agent is not None:
            return agent == self.agent
        if self.owner == "" and session.startswith(RESERVED):
            return False
        return self.owner is None or split_owned(session)[0] == self.owner


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """What a search asks for.

    >>> RecallQuestion("which database?", 5).explain
    False
    """

    text: str
    limit: int
    explain: bool = False
    """Whether each hit gets an explanation; hits for a blank text get none."""


MAX_RECALLED_AGENTS = 100
"""How many agents one search may cover."""


def too_many_agents() -> InvalidInputError:
    """Return the error of a search over more than ``MAX_RECALLED_AGENTS`` agents.

    >>> too_many_agents().field
    'agent_id'
    """
    return InvalidInputError(
        "agent_id",
        f"recall searches at most {MAX_RECALLED_AGENTS} agents at once, and there are more: name "
        "one agent at a time, or use recent or between, which read any number of agents",
    )


def no_patches(engine: str) -> NotSupportedError:
    """Return the error for patches of states, if events and states are in different stores.

    >>> no_patches("redis").engine
    'redis'
    """
    return NotSupportedError(
        engine,
        "patches of states with events",
        why="events and states are in different stores: append the events, then call "
        "short_term.update_state; or open Postgres without redis=",
    )


def no_states(engine: str) -> NotSupportedError:
    """Return the error for sessions with their states, if one read cannot give both.

    >>> no_states("redis").engine
    'redis'
    """
    return NotSupportedError(
        engine,
        "sessions with their states",
        why="events and states are in different stores, or metadata is encrypted: call "
        "list_sessions, then short_term.get_many",
    )


class NamedStates(NamedTuple):
    """How to find the states of sessions: the metadata key that lists them, and their id prefix.

    >>> NamedStates("states", "holdfast.owner:3:ana:").key
    'states'
    """

    key: str
    """The key of the metadata that has a list of their ids."""

    prefix: str
    """The prefix of the stored ids of the states; the ids in the metadata are without it."""

    def of(self, session: Session) -> list[str]:
        """Return the ids that a session names, without the prefix."""
        ids = session.metadata.get(self.key)
        return [one for one in ids if isinstance(one, str)] if isinstance(ids, list) else []


class NearestEvents(NamedTuple):
    """The events that a search found, and the log's dimension; ``None`` if it has no vectors."""

    dimension: int | None
    found: list[Recalled]


class EventStorage(Protocol):
    """The events of one tenant. The caller checks all arguments; bodies are JSON texts.

    Events of one session are ordered by position, which is (epoch, seq). Events of several sessions
    are ordered by time, then by session and position.
    """

    @abstractmethod
    async def append(
        self,
        entries: Sequence[LogEntry],
        vectors: Sequence[list[float]] | None,
        patches: Sequence[ExpectedWrite] = (),
    ) -> list[PositionedEntry] | Patched[PositionedEntry]:
        """Append entries, all or none, and return them as they are stored, in the same order.

        With patches it returns ``Patched``, with the new versions if the states were written.

        The keys of the entries differ, and there is at least one entry unless there are patches.
        ``vectors`` has one vector for each entry. Patches are of different sessions. They are
        written in the same step, but not if there are entries and all were stored before. Raises
        ``NotSupportedError`` (see ``no_patches``) before anything is written if that is impossible,
        and ``VersionConflictError`` if a state has another version.

        An entry whose id is stored with the same content (see ``LogEntry.content``) keeps its
        position and its time. With another content it raises ``ConflictError`` (see
        ``another_body``). Raises
        ``InvalidInputError("embeddings[N]", …)`` if a vector has another dimension than the log.
        """

    @abstractmethod
    async def recent(self, scope: EventScope, limit: int | None, after_seq: int = 0) -> list[Event]:
        """Return the newest events after ``after_seq``, ascending; all of them without a limit.

        The scope has no times. ``after_seq`` is 0 unless the scope has a session.
        """

    @abstractmethod
    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events that come after ``after``, ascending. The scope has both times.

        The event ``after`` may have been deleted since.
        """

    @abstractmethod
    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the best events by words, and by meaning if the engine has an embedder.

        Everything that was appended before is searched. A blank text finds the newest events.

        Each of the two searches gives its best ``max(CANDIDATES, limit)`` events of the scope.
        Equal scores are ordered by session, epoch and seq. A candidate of one search also gets its
        score in the other. ``recall_rules.rank`` ranks them, and ``recall_hits.to_hits`` makes the
        hits.

        Without an agent, the word weights of an event come from its own agent's events, and the
        scores of all agents are compared. Raises ``too_many_agents`` if more than
        ``MAX_RECALLED_AGENTS`` agents in the scope have events, but not for a blank text.
        """

    @abstractmethod
    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events with the closest vectors; none if those stored have another dimension.

        Raises ``InvalidInputError`` for too many agents, as ``search`` does.
        """


def other_subject(session: str) -> ConflictError:
    """Return the error for a start of a session that is, or was, about somebody else.

    >>> other_subject("s1").kind
    'session'
    """
    return ConflictError(
        "session", session, "it is, or was, about another subject: start one with another id"
    )


class EpisodeStorage(EventStorage, Protocol):
    """The events and sessions of one tenant. A start or a first event creates a session."""

    @abstractmethod
    async def start_session(
        self, session: str, agent: str, metadata: str | None, subject: str | None = None
    ) -> Session:
        """Create a session, or reopen it, and return it. ``metadata=None`` keeps its metadata.

        A new session gets the ``subject``, and so do its forks. A deleted session keeps its subject
        until the subject is erased, and a new session with its id gets that subject. Raises
        ``ConflictError`` if the session has, or had, another subject; ``None`` accepts any.
        """

    @abstractmethod
    async def end_session(self, session: str) -> Session | None:
        """End a session unless it has ended, and return it; ``None`` if it does not exist."""

    @abstractmethod
    async def get_session(self, session: str) -> Session | None:
        """Return a session; ``None`` if it does not exist."""

    @abstractmethod
    async def list_sessions(
        self, scope: SessionScope, limit: int, after: Session | None
    ) -> list[Session]:
        """Return sessions, newest first, then by id descending.

        If the order is by activity, each session and ``after`` have ``last_active_at``.
        """

    @abstractmethod
    async def list_sessions_with_states(
        self, scope: SessionScope, limit: int, after: Session | None, named: NamedStates
    ) -> tuple[list[Session], dict[str, StateSnapshot]]:
        """Return sessions by their start, and the states that they name, by stored id.

        It is one read. States that do not exist, or have expired, are left out. Raises
        ``NotSupportedError`` (see ``no_states``) if that is impossible.
        """

    @abstractmethod
    async def agents(self, page: IdPage) -> list[str]:
        """Return a page of the agents that have events, by name."""

    @abstractmethod
    async def get(self, session: str, ids: list[str]) -> list[Event]:
        """Return the events of a session that have these ids, in any order. No id is repeated."""

    @abstractmethod
    async def fork(self, session: str, at: int | None, into: str) -> Session:
        """Copy the events of a session up to the number ``at``, or all, into the new session.

        The events keep their ids and positions, and the new session continues after ``at``. If
        ``into`` exists as the same fork, it is returned. Raises ``NotFoundError``,
        ``ConflictError`` if ``into`` is or was another session, ``InvalidInputError("at", …)`` if
        the session has no such number yet.
        """

    @abstractmethod
    async def delete_session(self, session: str) -> bool:
        """Delete a session with its log, and return whether there was one.

        A session that is created under this id later continues its numbers.
        """

    @abstractmethod
    async def delete_events(self, session: str, ids: list[str]) -> int:
        """Delete events of a session by their ids, and return how many were there.

        Their positions are not used again. No id is repeated.
        """

    @abstractmethod
    async def clear(
        self, session: str, agent: str | None, run: str | None, types: list[str] | None
    ) -> int:
        """Delete matching events, and return how many. Their positions are not used again."""
