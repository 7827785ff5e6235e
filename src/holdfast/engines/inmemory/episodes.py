"""The session log, in process: append events, read them by position and by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.event_index import Row
from holdfast.engines.inmemory.recall import Recall
from holdfast.engines.inmemory.session_log import SessionLog, SessionRecord
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.spi.embedding import Embedder
from holdfast.spi.episodes import (
    EpisodeStorage,
    EventScope,
    NamedStates,
    NearestEvents,
    RecallQuestion,
    SessionScope,
    other_subject,
)
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.id_page import IdPage
from holdfast.spi.log_entry import LogEntry
from holdfast.values.codec import decode_json
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.identity import AgentId
from holdfast.values.states import ExpectedWrite, Patched, StateSnapshot


class InMemoryEpisodes(EpisodeStorage):
    """The sessions and events of one tenant in memory; an embedder adds recall by meaning.

    >>> episodes = InMemoryEpisodes(InMemory(), tenant="acme")
    """

    def __init__(
        self, engine: InMemory, *, tenant: str = "default", embedder: Embedder | None = None
    ) -> None:
        self._engine = engine
        self._log = engine.table(tenant, SessionLog)
        self._recall = Recall(self._log, embedder)
        self._states = InMemoryStates(engine, tenant=tenant)

    async def append(
        self,
        entries: Sequence[LogEntry],
        vectors: Sequence[list[float]] | None,
        patches: Sequence[ExpectedWrite] = (),
    ) -> Patched[PositionedEntry]:
        """Append entries and patch states, all or none."""
        if entries and all(self._log.has(one) for one in entries):
            patches = ()
        for write, expected in patches:
            self._states.check(write, expected)
        rows = self._log.append(entries, vectors, self._engine.now())
        versions = [self._states.put(write) for write, _ in patches]
        stored = (PositionedEntry(row, row.epoch, row.seq) for row in rows)
        return Patched(stored, versions=versions)

    async def recent(self, scope: EventScope, limit: int | None, after_seq: int = 0) -> list[Event]:
        """Return the newest events of a scope, ascending."""
        rows = [row for row in self._rows(scope) if row.seq > after_seq]
        first = 0 if limit is None else max(len(rows) - limit, 0)
        return [row.event() for row in rows[first:]]

    async def get(self, session: str, ids: list[str]) -> list[Event]:
        """Return events of a session by their ids."""
        record = self._log.sessions.get(session)
        rows = record.rows if record else {}
        return [rows[one].event() for one in ids if one in rows]

    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events of a scope after the event ``after``, ascending."""
        rows, in_session = self._rows(scope), scope.session is not None
        if after is not None:
            position = _position(after, in_session=in_session)
            rows = [row for row in rows if _position(row, in_session=in_session) > position]
        return [row.event() for row in rows[:limit]]

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the events that match the question best, by words and by meaning."""
        return await self._recall.search(scope, question)

    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events whose vectors are closest to this vector."""
        return self._recall.nearest(scope, vector, limit)

    async def start_session(
        self, session: str, agent: str, metadata: str | None, subject: str | None = None
    ) -> Session:
        """Create or reopen a session."""
        known = self._log.subject_of(session)
        if None not in (subject, known) and subject != known:
            raise other_subject(session)
        record = self._log.session(session, agent, self._engine.now())
        record.subject = record.subject or subject or ""
        record.ended_at = None
        if metadata is not None:
            record.metadata = metadata
        return _to_session(record)

    async def end_session(self, session: str) -> Session | None:
        """End a session and return it; ``None`` if it does not exist."""
        record = self._log.sessions.get(session)
        if record is None:
            return None
        record.ended_at = record.ended_at or self._engine.now()
        return _to_session(record)

    async def get_session(self, session: str) -> Session | None:
        """Return a session, or ``None``."""
        record = self._log.sessions.get(session)
        return None if record is None else _to_session(record)

    async def list_sessions(
        self, scope: SessionScope, limit: int, after: Session | None
    ) -> list[Session]:
        """Return sessions, newest first."""
        found = sorted(
            (
                _to_session(one, by_activity=scope.by_activity)
                for one in self._log.sessions.values()
                if scope.has(one.id, one.agent, one.metadata)
            ),
            key=_newest,
            reverse=True,
        )
        if after is not None:
            found = [session for session in found if _newest(session) < _newest(after)]
        return found[:limit]

    async def list_sessions_with_states(
        self, scope: SessionScope, limit: int, after: Session | None, named: NamedStates
    ) -> tuple[list[Session], dict[str, StateSnapshot]]:
        """Return sessions by their start, and the states that they name."""
        page = await self.list_sessions(scope, limit, after)
        ids = {named.prefix + name for one in page for name in named.of(one)}
        states = {one: await self._states.read(one, None) for one in ids}
        return page, {one: state for one, state in states.items() if state.version}

    async def agents(self, page: IdPage) -> list[str]:
        """Return a page of the agents that have events."""
        return page.of(agent for agent, rows in self._log.agents.items() if rows)

    async def fork(self, session: str, at: int | None, into: str) -> Session:
        """Copy the log of a session up to ``at`` into a new session."""
        source, there = self._log.sessions.get(session), self._log.sessions.get(into)
        if source is None:
            raise NotFoundError("session", session)
        if at is not None and at > source.seq:
            raise InvalidInputError("at", f"the session ends at {source.seq}")
        if into in self._log.deleted() or (
            there and (there.parent != session or at not in (None, there.parent_at))
        ):
            raise ConflictError("session", into, "the id is in use, or was: fork into a new one")
        last = source.seq if at is None else at
        return _to_session(there or self._log.fork(source, last, into, self._engine.now()))

    async def delete_session(self, session: str) -> bool:
        """Delete a session with its log. Returns whether it existed."""
        return self._log.delete(session)

    async def delete_events(self, session: str, ids: list[str]) -> int:
        """Delete events by their ids. Returns how many existed."""
        return len(self._log.delete_events(session, ids))

    async def clear(
        self, session: str, agent: str | None, run: str | None, types: list[str] | None
    ) -> int:
        """Delete the matching events of a session. Returns how many."""
        return len(self._log.clear(session, agent=agent, run=run, types=types))

    def _rows(self, scope: EventScope) -> list[Row]:
        """Return the stored events of a scope: in one session by position, otherwise by time."""
        if scope.session is None:
            return sorted(
                self._log.of_scope(scope).values(), key=lambda row: _position(row, in_session=False)
            )
        session = self._log.sessions.get(scope.session)
        return [row for row in session.rows.values() if scope.has(row)] if session else []


def _position(item: Row | Event, *, in_session: bool) -> tuple[Any, ...]:
    if in_session:
        return (item.epoch, item.seq)
    session = item.session if isinstance(item, Row) else item.session_id
    return (item.occurred_at, session, item.epoch, item.seq)


def _newest(session: Session) -> tuple[Any, ...]:
    return (session.last_active_at or session.started_at, session.id)


def _to_session(record: SessionRecord, *, by_activity: bool = False) -> Session:
    last = next((row.occurred_at for row in reversed(record.rows.values())), record.started_at)
    return Session(
        id=record.id,
        agent_id=AgentId.parse(record.agent),
        started_at=record.started_at,
        ended_at=record.ended_at,
        metadata=decode_json(record.metadata),
        last_active_at=last if by_activity else None,
        parent=record.parent,
        parent_at=record.parent_at,
        subject=record.subject,
    )
