"""The session log in the process: appended, read back by place and by time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.backends.inmemory.engine import InMemory
from holdfast.backends.inmemory.recall import Recall
from holdfast.backends.inmemory.session_log import Row, SessionLog, SessionRecord
from holdfast.kernel.core.checks import check_count, check_id, check_ids, check_list, check_time
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.errors import InvalidInputError, NotFoundError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.episodes import EpisodicMemory, Event, Recalled, Session
from holdfast.kernel.storage.log_entry import check_embeddings


class InMemoryEpisodes(EpisodicMemory):
    """``EpisodicMemory`` of the in-memory engine; an embedder adds recall by meaning.

    >>> episodes = InMemoryEpisodes(InMemory(), tenant="acme")
    """

    def __init__(
        self, engine: InMemory, *, tenant: str = "default", embedder: Embedder | None = None
    ) -> None:
        self._engine = engine
        self._log = engine.table(tenant, SessionLog)
        self._recall = Recall(self._log, embedder)

    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Add events to the logs of their sessions, all or none; returns them with their place."""
        check_list("events", events)
        rows = [Row.of_event(f"events[{at}]", event) for at, event in enumerate(events)]
        for row, vector in zip(rows, check_embeddings(embeddings, len(rows)) or (), strict=False):
            row.vector = vector
        return [row.event() for row in self._log.append(rows, self._engine.now())]

    async def recent(
        self,
        agent_id: AgentId,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
    ) -> list[Event]:
        """The newest events of an agent, ascending."""
        rows = self._rows(agent_id, session_id, types)
        limit = check_count("limit", limit)
        return [row.event() for row in rows[len(rows) - limit if limit < len(rows) else 0 :]]

    async def between(
        self,
        agent_id: AgentId,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = None,
        types: list[str] | None = None,
        limit: int = 1000,
        after: Event | None = None,
    ) -> list[Event]:
        """What an agent did from ``start`` until before ``end``, in pages."""
        start, end = check_time("start", start), check_time("end", end)
        limit = check_count("limit", limit)
        rows = [
            row for row in self._rows(agent_id, session_id, types) if start <= row.occurred_at < end
        ]
        if after is not None:
            if not isinstance(after, Event):
                raise InvalidInputError("after", "must be the last event of the page before")
            place = _place(after, in_session=session_id is not None)
            rows = [row for row in rows if _place(row, in_session=session_id is not None) > place]
        return [row.event() for row in rows[:limit]]

    async def recall(
        self,
        agent_id: AgentId,
        query: str | list[float],
        *,
        limit: int = 5,
        session_id: str | None = None,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Recalled]:
        """The events nearest to a question, by words and, with an embedder, by meaning."""
        agent = str(AgentId.parse(agent_id))
        limit = check_count("limit", limit)
        session = None if session_id is None else check_id("session_id", session_id)
        wanted = None if types is None else frozenset(check_ids("types", types))
        start = None if since is None else check_time("since", since)
        end = None if until is None else check_time("until", until)

        def allowed(row: Row) -> bool:
            return (
                (session is None or row.session == session)
                and (wanted is None or row.type in wanted)
                and (start is None or row.occurred_at >= start)
                and (end is None or row.occurred_at < end)
            )

        return await self._recall.search(agent, query, limit, allowed)

    async def start_session(
        self,
        agent_id: AgentId,
        session_id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        """Begin a session, or take up one that is there; ``metadata`` replaces what it had."""
        agent = str(AgentId.parse(agent_id))
        key = new_id() if session_id is None else check_id("session_id", session_id)
        text = None if metadata is None else encode_object(metadata, field="metadata")
        record = self._log.session(key, agent, self._engine.now())
        record.ended_at = None
        if text is not None:
            record.metadata = text
        return _to_session(record)

    async def end_session(self, session_id: str) -> Session:
        """Mark a session as ended; its log stays."""
        record = self._log.sessions.get(check_id("session_id", session_id))
        if record is None:
            raise NotFoundError("session", session_id)
        record.ended_at = record.ended_at or self._engine.now()
        return _to_session(record)

    async def get_session(self, session_id: str) -> Session | None:
        """A session, or ``None``."""
        record = self._log.sessions.get(check_id("session_id", session_id))
        return None if record is None else _to_session(record)

    async def list_sessions(
        self, agent_id: AgentId, *, limit: int = 50, after: Session | None = None
    ) -> list[Session]:
        """The sessions that an agent started, newest first; ``after`` is the last page's end."""
        agent = str(AgentId.parse(agent_id))
        limit = check_count("limit", limit)
        if after is not None and not isinstance(after, Session):
            raise InvalidInputError("after", "must be the last session of the page before")
        found = sorted(
            (record for record in self._log.sessions.values() if record.agent == agent),
            key=lambda record: (record.started_at, record.id),
            reverse=True,
        )
        if after is not None:
            place = (after.started_at, after.id)
            found = [record for record in found if (record.started_at, record.id) < place]
        return [_to_session(record) for record in found[:limit]]

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: AgentId | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Remove events of a session's log, narrowed by what is given; returns how many."""
        gone = self._log.clear(
            check_id("session_id", session_id),
            agent=None if agent_id is None else str(AgentId.parse(agent_id)),
            run=None if run_id is None else check_id("run_id", run_id),
            types=None if types is None else frozenset(check_ids("types", types)),
        )
        return len(gone)

    def _rows(
        self, agent_id: AgentId, session_id: str | None, types: list[str] | None
    ) -> list[Row]:
        """The agent's rows in order: by place in one session, by time across sessions."""
        agent = str(AgentId.parse(agent_id))
        wanted = None if types is None else frozenset(check_ids("types", types))
        if session_id is None:
            found = sorted(
                self._log.of_agent(agent).values(), key=lambda row: _place(row, in_session=False)
            )
        else:
            session = self._log.sessions.get(check_id("session_id", session_id))
            found = [row for row in session.rows.values() if row.agent == agent] if session else []
        return [row for row in found if wanted is None or row.type in wanted]


def _place(item: Row | Event, *, in_session: bool) -> tuple[Any, ...]:
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
