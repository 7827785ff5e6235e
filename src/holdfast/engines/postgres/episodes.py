"""The session log, on Postgres: append events, read them by position and by time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.event_scope import (
    metadata_filter,
    narrowed,
    payload_filter,
    whose,
)
from holdfast.engines.postgres.queries import filled, load
from holdfast.engines.postgres.recall import Recall
from holdfast.engines.postgres.session_log import append, stored
from holdfast.engines.postgres.short_term import snapshot
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
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.identity import AgentId
from holdfast.values.owners import RESERVED
from holdfast.values.states import ExpectedWrite, StateSnapshot

_SQL = load("episodes")
_ALL = 1 << 62
_OF_AGENT = "/* whose */ s.agent = $2"
_OF_OWNER = f"s.owner = $2 AND ($2 <> '' OR NOT starts_with(s.id, '{RESERVED}'))"
_OF_ALL = "$2::text IS NULL"


class PostgresEpisodes(EpisodeStorage):
    """The sessions and events of one tenant in Postgres; an embedder adds recall by meaning.

    ::

        episodes = PostgresEpisodes(engine, tenant="acme")
    """

    def __init__(
        self, engine: Postgres, *, tenant: str = "default", embedder: Embedder | None = None
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._recall = Recall(engine, tenant, embedder)

    async def append(
        self,
        entries: Sequence[LogEntry],
        vectors: Sequence[list[float]] | None,
        patches: Sequence[ExpectedWrite] = (),
    ) -> list[PositionedEntry]:
        """Append entries and patch states, all or none."""
        rows = await append(self._engine, self._tenant, entries, vectors, patches)
        return stored(entries, rows)

    async def recent(self, scope: EventScope, limit: int | None, after_seq: int = 0) -> list[Event]:
        """Return the newest events of a scope, ascending."""
        where = payload_filter(scope)
        if scope.session is None:
            most = _ALL if limit is None else limit
            rows = await self._read(_SQL["recent"], scope, scope.types, most, *where)
        else:
            sql = _SQL["recent_in_session"]
            rows = await self._read(sql, scope, scope.types, limit, *where, after_seq)
        return _events(reversed(rows))

    async def get(self, session: str, ids: list[str]) -> list[Event]:
        """Return events of a session by their ids."""
        rows = await self._engine.fetch(_SQL["get"], self._tenant, session, ids, safe=True)
        return _events(rows)

    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events of a scope after the event ``after``, ascending."""
        sql = _SQL["between"] if scope.session is None else _SQL["between_in_session"]
        position: tuple[Any, ...] = (None, None) if after is None else (after.epoch, after.seq)
        if scope.session is None:
            time = (None, None) if after is None else (after.occurred_at, after.session_id)
            position = (*time, *position)
        span = (scope.since, scope.until)
        rows = await self._read(
            sql, scope, *span, limit, scope.types, *position, *payload_filter(scope)
        )
        return _events(rows)

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the events that match the question best, by words and by meaning."""
        return await self._recall.by_text(question, scope)

    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events whose vectors are closest to this vector."""
        return await self._recall.by_vector(vector, scope, limit)

    async def start_session(
        self, session: str, agent: str, metadata: str | None, subject: str | None = None
    ) -> Session:
        """Create or reopen a session."""
        what = (self._tenant, session, agent, metadata, subject)
        row = await self._engine.fetchrow(_SQL["start_session"], *what, safe=True)
        if row is None:
            raise other_subject(session)
        return _session(row)

    async def end_session(self, session: str) -> Session | None:
        """End a session and return it; ``None`` if it does not exist."""
        return await self._found(_SQL["end_session"], session)

    async def get_session(self, session: str) -> Session | None:
        """Return a session, or ``None``."""
        return await self._found(_SQL["get_session"], session)

    async def list_sessions(
        self, scope: SessionScope, limit: int, after: Session | None
    ) -> list[Session]:
        """Return sessions, newest first."""
        sql = _SQL["list_active_sessions"] if scope.by_activity else _SQL["list_sessions"]
        return [_session(row) for row in await self._listed(sql, scope, limit, after)]

    async def list_sessions_with_states(
        self, scope: SessionScope, limit: int, after: Session | None, named: NamedStates
    ) -> tuple[list[Session], dict[str, StateSnapshot]]:
        """Return sessions by their start, and the states that they name."""
        sql = _SQL["list_sessions_with_states"]
        rows = await self._listed(sql, scope, limit, after, *named)
        page = [_session(row) for row in rows if row["id"] is not None]
        page.sort(key=lambda one: (one.started_at, one.id), reverse=True)
        states = (row for row in rows if row["id"] is None)
        return page, {row["session_id"]: snapshot(row) for row in states}

    async def _listed(
        self,
        sql: LiteralString,
        scope: SessionScope,
        limit: int,
        after: Session | None,
        *named: str,
    ) -> Sequence[Any]:
        whom = scope.agent
        if whom is None:
            sql = filled(sql, {_OF_AGENT: _OF_ALL if scope.owner is None else _OF_OWNER})
            whom = scope.owner
        when = None if after is None else after.last_active_at or after.started_at
        position = (when, None if after is None else after.id)
        where = metadata_filter(scope)
        return await self._engine.search(sql, self._tenant, whom, limit, *position, *where, *named)

    async def agents(self, page: IdPage) -> list[str]:
        """Return a page of the agents that have events."""
        args = (self._tenant, page.after, *page.ranges(), page.limit)
        return [name for [name] in await self._engine.fetch(_SQL["agents"], *args, safe=True)]

    async def fork(self, session: str, at: int | None, into: str) -> Session:
        """Copy the log of a session up to ``at`` into a new session."""
        what = (self._tenant, session, at, into)
        return _session(await self._engine.fetchrow(_SQL["fork"], *what, safe=True))

    async def delete_session(self, session: str) -> bool:
        """Delete a session with its log. Returns whether it existed."""
        # Safe to repeat, but the repeat would not find it.
        what = (self._tenant, session)
        return bool(await self._engine.fetch(_SQL["delete_session"], *what, safe=False))

    async def delete_events(self, session: str, ids: list[str]) -> int:
        """Delete events by their ids. Returns how many existed."""
        where = (self._tenant, session, ids)
        return len(await self._engine.fetch(_SQL["delete_events"], *where, safe=False))

    async def clear(
        self, session: str, agent: str | None, run: str | None, types: list[str] | None
    ) -> int:
        """Delete the matching events of a session. Returns how many."""
        what = (self._tenant, session, agent, run, types)
        return int(await self._engine.fetchval(_SQL["clear"], *what, safe=False))

    async def _read(self, sql: LiteralString, scope: EventScope, *args: Any) -> Sequence[Any]:
        sql, agent = whose(narrowed(sql, scope.types, scope.where), scope)
        session = () if scope.session is None else (scope.session,)
        if scope.where is None:
            return await self._engine.fetch(sql, self._tenant, *session, agent, *args, safe=True)
        # A filter may read any number of events for one that passes, so the time is limited.
        return await self._engine.search(sql, self._tenant, *session, agent, *args)

    async def _found(self, sql: LiteralString, session: str) -> Session | None:
        row = await self._engine.fetchrow(sql, self._tenant, session, safe=True)
        return None if row is None else _session(row)


def _events(rows: Iterable[Any]) -> list[Event]:
    return [
        Event(AgentId.parse(agent), session, type_, decode_json(body), id_, run, when, epoch, seq)
        for agent, session, type_, body, id_, run, when, epoch, seq in rows
    ]


def _session(row: Any) -> Session:
    return Session(
        id=row["id"],
        agent_id=AgentId.parse(row["agent"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        metadata=decode_json(row["metadata"]),
        last_active_at=row.get("last_active_at"),
        parent=row["parent"],
        parent_at=row["parent_at"],
        subject=row["subject"] or "",
    )
