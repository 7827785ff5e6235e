"""The session log, in process: append events, read them by position and by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.recall import Recall
from holdfast.engines.inmemory.session_log import Row, SessionLog, SessionRecord
from holdfast.spi.embedding import Embedder
from holdfast.spi.episodes import EpisodeStorage, EventScope, NearestEvents
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.log_entry import LogEntry
from holdfast.values.codec import decode_json
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.identity import AgentId


class InMemoryEpisodes(EpisodeStorage):
    """``EpisodeStorage`` of the in-memory engine; an embedder adds recall by meaning.

    >>> episodes = InMemoryEpisodes(InMemory(), tenant="acme")
    """

    def __init__(
        self, engine: InMemory, *, tenant: str = "default", embedder: Embedder | None = None
    ) -> None:
        self._engine = engine
        self._log = engine.table(tenant, SessionLog)
        self._recall = Recall(self._log, embedder)

    async def append(
        self, entries: Sequence[LogEntry], vectors: Sequence[list[float]] | None
    ) -> list[PositionedEntry]:
        """Append entries, all or none."""
        rows = self._log.append(entries, vectors, self._engine.now())
        return [PositionedEntry(row, row.epoch, row.seq) for row in rows]

    async def recent(self, scope: EventScope, limit: int) -> list[Event]:
        """Return the newest events, ascending."""
        rows = self._rows(scope)
        return [row.event() for row in rows[max(len(rows) - limit, 0) :]]

    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events after one, ascending."""
        rows, in_session = self._rows(scope), scope.session is not None
        if after is not None:
            position = _position(after, in_session=in_session)
            rows = [row for row in rows if _position(row, in_session=in_session) > position]
        return [row.event() for row in rows[:limit]]

    async def search(self, scope: EventScope, text: str, limit: int) -> list[Recalled]:
        """Return the best events by words and meaning."""
        return await self._recall.search(scope, text, limit)

    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events whose vectors are closest."""
        return self._recall.nearest(scope, vector, limit)

    async def start_session(self, session: str, agent: str, metadata: str | None) -> Session:
        """Create or reopen a session."""
        record = self._log.session(session, agent, self._engine.now())
        record.ended_at = None
        if metadata is not None:
            record.metadata = metadata
        return _to_session(record)

    async def end_session(self, session: str) -> Session | None:
        """End a session."""
        record = self._log.sessions.get(session)
        if record is None:
            return None
        record.ended_at = record.ended_at or self._engine.now()
        return _to_session(record)

    async def get_session(self, session: str) -> Session | None:
        """Return a session."""
        record = self._log.sessions.get(session)
        return None if record is None else _to_session(record)

    async def list_sessions(self, agent: str, limit: int, after: Session | None) -> list[Session]:
        """Return the sessions that an agent started, newest first."""
        found = sorted(
            (record for record in self._log.sessions.values() if record.agent == agent),
            key=lambda record: (record.started_at, record.id),
            reverse=True,
        )
        if after is not None:
            position = (after.started_at, after.id)
            found = [record for record in found if (record.started_at, record.id) < position]
        return [_to_session(record) for record in found[:limit]]

    async def clear(
        self, session: str, agent: str | None, run: str | None, types: list[str] | None
    ) -> int:
        """Delete events."""
        return len(self._log.clear(session, agent=agent, run=run, types=types))

    def _rows(self, scope: EventScope) -> list[Row]:
        """Return the rows of a scope, by position in one session, by time across sessions."""
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


def _to_session(record: SessionRecord) -> Session:
    return Session(
        id=record.id,
        agent_id=AgentId.parse(record.agent),
        started_at=record.started_at,
        ended_at=record.ended_at,
        metadata=decode_json(record.metadata),
    )
