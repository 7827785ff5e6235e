"""The events of session logs: appended, and read by position, by time and by meaning."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from holdfast.contracts.agent_memory import MemoryLog
from holdfast.contracts.front import Front
from holdfast.contracts.paging import cursor_of_event, event_before
from holdfast.contracts.state_patches import check_patches
from holdfast.spi.episodes import EventScope, EventStorage, RecallQuestion, no_patches
from holdfast.spi.log_entry import LogEntry, check_embeddings, distinct
from holdfast.spi.reranking import RERANKED, Reranker, check_reranker, rerank
from holdfast.values.checks import (
    check_count,
    check_ids,
    check_list,
    check_optional_count,
    check_text,
    check_time,
    check_unreserved,
    check_vector,
)
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event, Recalled
from holdfast.values.explanations import ArmScore, Explanation
from holdfast.values.identity import AllAgents, AnyAgent
from holdfast.values.owners import RESERVED
from holdfast.values.payload_filters import parse_where
from holdfast.values.states import Patched, StatePatch


class Events(Front, MemoryLog):
    """Implements ``MemoryLog`` on an engine that stores events; it need not store sessions.

    ::

        log = Events(RedisEvents(engine, tenant="acme"))
    """

    _any_owner = False
    _states_in = ""

    def __init__(
        self,
        storage: EventStorage,
        *,
        state_ttl_seconds: float | None = None,
        state_versions: int = 0,
    ) -> None:
        self._events = storage
        self._state_versions = state_versions
        self._state_ttl_seconds = state_ttl_seconds

    def any_owner(self) -> Self:
        """Return this log with ``ALL_AGENTS`` meaning the agents of every owner. For operators.

        A log that is bound to one owner, or to events without an owner, stays as it is. ::

            events = await state.episodes.any_owner().recent(ALL_AGENTS)
        """
        if self._scope.owner or self._scope.is_confined:
            return self
        log = copy.copy(self)
        log._any_owner = True  # noqa: SLF001 - it is one of us
        return log

    def refuse_patches(self, engine: str) -> None:
        """Refuse what needs events and states in one step: states are in the store ``engine``.

        ::

            episodes.refuse_patches("redis")
        """
        self._states_in = engine

    async def append(
        self,
        events: list[Event],
        *,
        embeddings: list[list[float]] | None = None,
        patches: Sequence[StatePatch] = (),
    ) -> Patched[Event]:
        """Append events to the logs of their sessions, all or none. Returns them as stored.

        An event whose id is already in its session counts as a retry if agent, type, run and
        payload are the same: the stored event is returned, with its position and time. Otherwise
        raises ``ConflictError``. ::

            [event] = await episodes.append([Event(agent, "s1", "decision", {"use": "postgres"})])

        ``patches`` change states in the same step: the events are stored and all states are
        patched, or nothing is. The list that is returned has the new ``versions`` of the states.
        If all events are stored already, it is a retry: no state is patched again, and there are no
        versions. Raises ``NotSupportedError`` where events and states are in different stores. ::

            done = await episodes.append([event], patches=[StatePatch("s1", {"step": 2})])
            [version] = done.versions
        """
        check_list("events", events)
        entries = [self._entry(f"events[{at}]", event) for at, event in enumerate(events)]
        for at, entry in enumerate(entries):
            self._limits.check_value(f"events[{at}]", entry.body)
        vectors = check_embeddings(embeddings, len(entries))
        unique = distinct(entries)
        writes = check_patches(
            patches, self._scope, self._limits, self._state_ttl_seconds, self._state_versions
        )
        if not unique and not writes:
            return Patched()
        if writes and self._states_in:
            raise no_patches(self._states_in)
        if vectors is not None:
            given = dict(zip((one.key for one in entries), vectors, strict=True))
            vectors = [given[key] for key in unique]
        batch = list(unique.values())
        if writes:
            stored = await self._events.append(batch, vectors, writes)
        else:
            stored = await self._events.append(batch, vectors)
        positioned = dict(zip(unique, stored, strict=True))
        found = (self._scope.own_event(positioned[entry.key].to_event()) for entry in entries)
        return Patched(found, versions=stored.versions if isinstance(stored, Patched) else ())

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
        limit: int | None = 20,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
        after_seq: int | None = None,
    ) -> list[Event]:
        """Return the newest events of an agent, or of ``ALL_AGENTS``, ascending.

        A ``limit`` of ``None`` returns all of them. ``where`` filters them by the scalars at the
        top level of their payloads. ``after_seq`` skips the events up to that position in the log
        of the session. ::

            window = await episodes.recent(agent, session_id="s1", limit=50)
            failed = await episodes.recent(ALL_AGENTS, where={"status": "failed"})
            more = await episodes.recent(agent, session_id="s1", limit=None, after_seq=50)
        """
        scope = self._events_of(agent_id, session_id, types, where)
        most = check_optional_count("limit", limit)
        after = check_optional_count("after_seq", after_seq)
        if after is not None and session_id is None:
            raise InvalidInputError(
                "after_seq", "is a position in the log of one session: pass its session_id"
            )
        return self._own(await self._events.recent(scope, most, after or 0))

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
        explain: bool = False,
        reranker: Reranker | None = None,
    ) -> list[Recalled]:
        """Return the events nearest to a question, by words and, with an embedder, by meaning.

        With ``ALL_AGENTS`` at most 100 agents are searched; if there are more, raises
        ``InvalidInputError``. ``where`` filters as in ``recent``. With ``explain`` each hit has an
        ``explanation``. A ``reranker`` orders the first 20 hits of a question in words. ::

            hits = await episodes.recall(agent, "which database did we choose?")
        """
        start = None if since is None else check_time("since", since)
        end = None if until is None else check_time("until", until)
        scope = self._events_of(agent_id, session_id, types, where, (start, end))
        limit = check_count("limit", limit)
        model = None if reranker is None else check_reranker("reranker", reranker)
        begin = time.perf_counter()
        if isinstance(query, str):
            text = self._limits.check_query("query", check_text("query", query))
            most = limit if model is None or not limit else max(limit, RERANKED)
            found = await self._events.search(scope, RecallQuestion(text, most, explain))
        else:
            text, vector = "", check_vector("query", query)
            if model is not None:
                raise InvalidInputError("reranker", "needs a question in words, not a vector")
            dimension, found = await self._events.nearest(scope, vector, limit)
            if dimension is not None:
                check_vector("query", vector, dimension=dimension)
        hits = self._own_hits(found)
        if explain and not text.strip():
            hits = _explained(hits, begin)
        if model is not None and text.strip():
            hits = await rerank(model, text, hits)
        return hits[:limit]

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


def _explained(hits: list[Recalled], begin: float) -> list[Recalled]:
    """Add an explanation to the hits of a search by vector, or to the most recent events."""
    took = (time.perf_counter() - begin) * 1000
    found = []
    for rank, hit in enumerate(hits, 1):
        [arm] = hit.found_by
        score = ArmScore(hit.scores.get(arm, hit.score), rank)
        explanation = Explanation(arms={arm: score}, milliseconds={arm: took})
        found.append(replace(hit, explanation=explanation))
    return found
