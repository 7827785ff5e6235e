"""The session log: everything that happened, in order, recalled by time and by meaning."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from holdfast.contracts.agent_memory import MemoryLog
from holdfast.contracts.front import Front
from holdfast.contracts.paging import (
    cursor_of_event,
    cursor_of_session,
    event_before,
    session_before,
)
from holdfast.spi.episodes import EpisodeStorage, EventScope, EventStorage
from holdfast.spi.log_entry import LogEntry, check_embeddings, distinct
from holdfast.values.checks import (
    check_count,
    check_id,
    check_ids,
    check_list,
    check_text,
    check_time,
    check_unreserved,
    check_vector,
)
from holdfast.values.codec import encode_object
from holdfast.values.deprecation import renamed
from holdfast.values.errors import NotFoundError
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.identity import Agent, AllAgents, AnyAgent
from holdfast.values.ids import new_id
from holdfast.values.owners import RESERVED
from holdfast.values.payload_filters import parse_where


class Events(Front, MemoryLog):
    """``MemoryLog`` on an engine that stores events but no sessions.

    ::

        log = Events(RedisEvents(engine, tenant="acme"))
    """

    _any_owner = False

    def __init__(self, storage: EventStorage) -> None:
        self._events = storage

    def any_owner(self) -> Self:
        """Return the same log, whose ``ALL_AGENTS`` are those of every owner, for operators.

        A log that is bound to one owner, or to events without an owner, stays as it is. ::

            events = await state.episodes.any_owner().recent(ALL_AGENTS)
        """
        if self._scope.owner or self._scope.is_confined:
            return self
        log = copy.copy(self)
        log._any_owner = True  # noqa: SLF001 - it is one of us
        return log

    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Append events to the logs of their sessions, all or none. Returns them as stored.

        An event whose id is already in its session counts as a retry if agent, type, run and
        payload are the same: the stored event is returned, with its position and time. Otherwise
        raises ``ConflictError``. ::

            [event] = await episodes.append([Event(agent, "s1", "decision", {"use": "postgres"})])
        """
        check_list("events", events)
        entries = [self._entry(f"events[{at}]", event) for at, event in enumerate(events)]
        for at, entry in enumerate(entries):
            self._limits.check_value(f"events[{at}]", entry.body)
        vectors = check_embeddings(embeddings, len(entries))
        unique = distinct(entries)
        if not unique:
            return []
        if vectors is not None:
            given = dict(zip((one.key for one in entries), vectors, strict=True))
            vectors = [given[key] for key in unique]
        stored = await self._events.append(list(unique.values()), vectors)
        positioned = dict(zip(unique, stored, strict=True))
        return [self._scope.own_event(positioned[entry.key].to_event()) for entry in entries]

    async def append_checked(self, entry: LogEntry) -> Event:
        """Append an event that the caller has checked to the log of its session.

        ::

            event = await episodes.append_checked(entry)
        """
        self._limits.check_value("payload", entry.body)
        [stored] = await self._events.append((self._scope.entry("event", entry),), None)
        return self._scope.own_event(stored.to_event())

    async def recent(
        self,
        agent_id: AnyAgent,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the newest events of an agent, or of ``ALL_AGENTS``, ascending.

        ``where`` filters them by the scalars at the top level of their payloads. ::

            window = await episodes.recent(agent, session_id="s1", limit=50)
            failed = await episodes.recent(ALL_AGENTS, where={"status": "failed"})
        """
        scope = self._events_of(agent_id, session_id, types, where)
        found = await self._events.recent(scope, check_count("limit", limit))
        return self._own(found)

    @renamed(after=("cursor", cursor_of_event))
    async def between(
        self,
        agent_id: AnyAgent,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = None,
        types: list[str] | None = None,
        limit: int = 1000,
        cursor: str | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the events of an agent, or of ``ALL_AGENTS``, from ``start`` until before ``end``.

        ``cursor`` is that of the last event of the previous page. ``where`` filters as in
        ``recent``. ::

            tuesday = await episodes.between(agent, start, start + timedelta(days=1))
        """
        span = (check_time("start", start), check_time("end", end))
        scope = self._events_of(agent_id, session_id, types, where, span)
        after = event_before(cursor, self._scope)
        found = await self._events.between(scope, after, check_count("limit", limit))
        return self._own(found)

    async def recall(
        self,
        agent_id: AnyAgent,
        query: str | list[float],
        *,
        limit: int = 5,
        session_id: str | None = None,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Recalled]:
        """Return the events nearest to a question, by words and, with an embedder, by meaning.

        With ``ALL_AGENTS`` at most 100 agents are searched; if there are more, raises
        ``InvalidInputError``. ``where``
        filters as in ``recent``. ::

            hits = await episodes.recall(agent, "which database did we choose?")
        """
        start = None if since is None else check_time("since", since)
        end = None if until is None else check_time("until", until)
        scope = self._events_of(agent_id, session_id, types, where, (start, end))
        limit = check_count("limit", limit)
        if isinstance(query, str):
            text = self._limits.check_query("query", check_text("query", query))
            found = await self._events.search(scope, text, limit)
            return self._own_hits(found)
        vector = check_vector("query", query)
        dimension, found = await self._events.nearest(scope, vector, limit)
        if dimension is not None:
            check_vector("query", vector, dimension=dimension)
        return self._own_hits(found)

    def _entry(self, field: str, event: Event) -> LogEntry:
        return self._scope.entry(field, LogEntry.of_event(field, event))

    def _events_of(
        self,
        agent_id: AnyAgent,
        session_id: str | None,
        types: list[str] | None,
        where: dict[str, Any] | None,
        span: tuple[datetime | None, datetime | None] = (None, None),
    ) -> EventScope:
        wanted = parse_where(where)
        if wanted is not None:
            self._limits.check_filter("where", wanted)
        some = (None if types is None else check_ids("types", types), *span, wanted)
        if not isinstance(agent_id, AllAgents):
            agent = self._scope.agent(agent_id)
            session = None if session_id is None else self._scope.recalled_session(session_id)
            return EventScope(agent, session, *some)
        # With all agents an owner sees only its own sessions, even if memory is shared.
        session = None if session_id is None else self._scope.id("session_id", session_id)
        if self._scope.owner:
            names = self._scope.names()
            return EventScope(None, session, *some, owner=self._scope.owner, names=names)
        if self._any_owner:
            return EventScope(None, session, *some)
        if session is not None:
            check_unreserved("session_id", session)
        return EventScope(None, session, *some, owner="", names=("", RESERVED))

    def _own(self, events: list[Event]) -> list[Event]:
        scope = self._scope
        return [scope.own_event(one) for one in events] if scope.owner else events

    def _own_hits(self, hits: list[Recalled]) -> list[Recalled]:
        scope = self._scope
        if not scope.owner:
            return hits
        return [
            replace(hit, event=scope.own_event(hit.event), degraded=scope.own_text(hit.degraded))
            for hit in hits
        ]


class EpisodicMemory(Events):
    """The ordered, append-only log of each session, one for all agents in it.

    A transcript is this log read with type ``message``: the same write serves both. The order in a
    session is (epoch, seq), never a clock; across sessions it is the time of occurrence.

    Promises:
    - an event comes back exactly as it was appended
    - append returns the events with their position in the log
    - seq is gap-free in the log of a session, whoever writes
    - a batch is contiguous in each of its sessions
    - order within a session is epoch and seq, never a clock
    - a batch is atomic: one bad event and none is stored
    - an empty batch does nothing
    - the same id and body again is a no-op that returns the first position
    - the same id and body with another time is the same event, and the first time stays
    - the same id with another body is a conflict and nothing is written
    - two equal events with different ids stay two
    - any type is legal
    - a message event is a message of the transcript
    - an appended message is an event of the log
    - a message event with a payload that is no message is refused
    - concurrent writers to one session leave no gap and lose nothing
    - recent returns the newest, ascending
    - recent of all sessions is ordered by time of occurrence
    - recent takes only the types asked for
    - an empty list of types is an empty result
    - a limit of zero is an empty result
    - a negative limit is an error that names it
    - one agent never sees anothers events
    - a tenant can neither read, write nor detect anothers events
    - an unknown agent or session is an empty result
    - where keeps only the events whose payload passes the filter
    - where sees the scalars at the top level of a payload, and nothing else
    - where does not see a text of more than 256 bytes
    - where on a nested key is refused, and the error says what can be filtered
    - where has the limits of every filter
    - recent returns as many as asked for whenever so many pass
    - all agents are asked only by name
    - recent and between of all agents hold what every agent did
    - pages of all agents miss nothing
    - all agents are those of the owner who asks, or those that nobody owns
    - all agents of any owner are those of the tenant
    - recall of all agents finds what any of them said
    - recall of all agents weighs a word by what each agent said
    - recall of all agents with an embedder finds by meaning what shares no word
    - recall of more than 100 agents is refused, and the error names the fix
    - between takes the start and leaves the end
    - between pages with a cursor and misses nothing
    - a cursor that no listing gave is refused
    - a naive time is refused
    - recall finds what shares a word with the query
    - recall ranks the rarer word higher
    - recall finds other forms of a word
    - recall finds an event before any indexer could have seen it
    - the speaker's name is part of what is recalled
    - recall is by agent across sessions, or in one session
    - recall filters by type and by time
    - recall returns k results whenever k match
    - recall scores are between zero and one, best first, and name their arm
    - recall of a blank query returns the most recent
    - recall by vector finds the nearest
    - a vector of another dimension is an error that names both
    - a zero, infinite or NaN vector is refused
    - embeddings must be as many as the events
    - recall by vector without any vectors is empty
    - recall with an embedder finds by meaning what shares no word
    - an embedder that is down never loses a write, and recall says so
    - sessions are created on first use
    - start_session is idempotent and keeps what was started
    - a session that ended may be started again
    - end_session keeps the first end
    - ending an unknown session is a NotFoundError
    - sessions are listed newest first, in pages
    - clear removes the whole log of the session, and nothing of another
    - clear narrows by agent, run and types
    - clear is idempotent and says how many
    - clear of an empty run id is refused
    - cleared events are never recalled
    - sequence numbers are never reused after a clear
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - what was appended is there after reopening
    """

    def __init__(self, storage: EpisodeStorage) -> None:
        super().__init__(storage)
        self._storage = storage

    async def start_session(
        self,
        agent_id: Agent,
        session_id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        """Start a session, or reopen an existing one; ``metadata`` replaces its metadata.

        ::

            session = await episodes.start_session(agent, metadata={"channel": "mail"})
        """
        agent = self._scope.agent(agent_id)
        name = new_id() if session_id is None else session_id
        session = self._scope.id("session_id", name)
        text = None if metadata is None else encode_object(metadata, field="metadata")
        self._limits.check_value("metadata", text or "")
        return self._scope.own_session(await self._storage.start_session(session, agent, text))

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
        self, agent_id: Agent, *, limit: int = 50, cursor: str | None = None
    ) -> list[Session]:
        """Return the sessions that an agent started, newest first.

        ``cursor`` is that of the last session of the previous page. ::

            page = await episodes.list_sessions(agent, limit=10)
            more = await episodes.list_sessions(agent, limit=10, cursor=page[-1].cursor)
        """
        agent, limit = self._scope.agent(agent_id), check_count("limit", limit)
        after = session_before(cursor, self._scope)
        found: list[Session] = []
        while True:
            page = await self._storage.list_sessions(agent, limit, after)
            # Shared memory is stored under the agent's own name, so leave out sessions of other
            # owners.
            found += [self._scope.own_session(one) for one in page if self._scope.owns(one.id)]
            if len(page) < limit or len(found) >= limit:
                return found[:limit]
            after = page[-1]

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: Agent | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Delete the events of a session that match all given arguments. Returns how many.

        ::

            removed = await episodes.clear("s1")
        """
        return await self._storage.clear(
            self._scope.id("session_id", session_id),
            None if agent_id is None else self._scope.agent(agent_id),
            None if run_id is None else check_id("run_id", run_id),
            None if types is None else check_ids("types", types),
        )
