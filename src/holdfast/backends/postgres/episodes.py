"""The session log on Postgres: appended, read back by place and by time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, LiteralString

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import filled, load
from holdfast.backends.postgres.recall import Recall, Scope
from holdfast.backends.postgres.session_log import append
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_ids,
    check_list,
    check_text,
    check_time,
    check_vector,
)
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.errors import InvalidInputError, NotFoundError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.episodes import EpisodicMemory, Event, Recalled, Session
from holdfast.kernel.storage.log_entry import LogEntry, check_embeddings

_SQL = load("episodes")


class PostgresEpisodes(EpisodicMemory):
    """``EpisodicMemory`` of the Postgres engine; an embedder adds recall by meaning.

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
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Add events to the logs of their sessions, all or none; returns them with their place."""
        check_list("events", events)
        entries = [LogEntry.of_event(f"events[{at}]", event) for at, event in enumerate(events)]
        vectors = check_embeddings(embeddings, len(entries))
        places = await append(self._engine, self._tenant, entries, vectors)
        return [entry.to_event(*places[entry.key]) for entry in entries]

    async def recent(
        self,
        agent_id: AgentId,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
    ) -> list[Event]:
        """The newest events of an agent, ascending."""
        agent, wanted = str(AgentId.parse(agent_id)), _types(types)
        limit = check_count("limit", limit)
        if session_id is None:
            rows = await self._engine.fetch(
                _typed(_SQL["recent"], wanted), self._tenant, agent, wanted, limit, safe=True
            )
        else:
            session = check_id("session_id", session_id)
            rows = await self._engine.fetch(
                _typed(_SQL["recent_in_session"], wanted),
                *(self._tenant, session, agent, wanted, limit),
                safe=True,
            )
        return _events(reversed(rows))

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
        agent, wanted = str(AgentId.parse(agent_id)), _types(types)
        span = (check_time("start", start), check_time("end", end), check_count("limit", limit))
        if after is not None and not isinstance(after, Event):
            raise InvalidInputError("after", "must be the last event of the page before")
        if session_id is None:
            place = (after.occurred_at, after.session_id, after.epoch, after.seq) if after else ()
            rows = await self._engine.fetch(
                _typed(_SQL["between"], wanted),
                *(self._tenant, agent, *span, wanted, *(place or (None,) * 4)),
                safe=True,
            )
        else:
            scope = (self._tenant, check_id("session_id", session_id), agent)
            place_in = (after.epoch, after.seq) if after else (None, None)
            rows = await self._engine.fetch(
                _typed(_SQL["between_in_session"], wanted),
                *(*scope, *span, wanted, *place_in),
                safe=True,
            )
        return _events(rows)

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
        scope = Scope(
            agent,
            None if session_id is None else check_id("session_id", session_id),
            _types(types),
            None if since is None else check_time("since", since),
            None if until is None else check_time("until", until),
        )
        if isinstance(query, str):
            return await self._recall.by_text(check_text("query", query), scope, limit)
        return await self._recall.by_vector(check_vector("query", query), scope, limit)

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
        row = await self._engine.fetchrow(
            _SQL["start_session"], self._tenant, key, agent, text, safe=True
        )
        return _session(row)

    async def end_session(self, session_id: str) -> Session:
        """Mark a session as ended; its log stays."""
        key = check_id("session_id", session_id)
        row = await self._engine.fetchrow(_SQL["end_session"], self._tenant, key, safe=True)
        if row is None:
            raise NotFoundError("session", session_id)
        return _session(row)

    async def get_session(self, session_id: str) -> Session | None:
        """A session, or ``None``."""
        key = check_id("session_id", session_id)
        row = await self._engine.fetchrow(_SQL["get_session"], self._tenant, key, safe=True)
        return None if row is None else _session(row)

    async def list_sessions(
        self, agent_id: AgentId, *, limit: int = 50, after: Session | None = None
    ) -> list[Session]:
        """The sessions that an agent started, newest first, in pages."""
        agent = str(AgentId.parse(agent_id))
        limit = check_count("limit", limit)
        if after is not None and not isinstance(after, Session):
            raise InvalidInputError("after", "must be the last session of the page before")
        place = (after.started_at, after.id) if after else (None, None)
        rows = await self._engine.fetch(
            _SQL["list_sessions"], self._tenant, agent, limit, *place, safe=True
        )
        return [_session(row) for row in rows]

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: AgentId | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Remove events of a session's log, narrowed by what is given; returns how many."""
        gone: int = await self._engine.fetchval(
            _SQL["clear"],
            self._tenant,
            check_id("session_id", session_id),
            None if agent_id is None else str(AgentId.parse(agent_id)),
            None if run_id is None else check_id("run_id", run_id),
            _types(types),
            safe=False,
        )
        return gone


def _types(types: list[str] | None) -> list[str] | None:
    return None if types is None else check_ids("types", types)


def _typed(sql: LiteralString, types: list[str] | None) -> LiteralString:
    """A statement with its filter by types, where there is one."""
    return sql if types is None else filled(sql, {"/* any type */ TRUE": "FALSE"})


def _events(rows: Iterable[Any]) -> list[Event]:
    return [LogEntry(*row[:7]).to_event(row[7], row[8]) for row in rows]


def _session(row: Any) -> Session:
    return Session(
        id=row["id"],
        agent_id=AgentId.parse(row["agent"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        metadata=decode_json(row["metadata"]),
    )
