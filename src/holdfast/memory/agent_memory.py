"""Implements ``AgentMemory`` with the stores of a state, so that it works on any engine."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast.contracts.agent_memory import DAY_SECONDS, AgentMemory, MemoryLog, Recordable
from holdfast.contracts.long_term_memory import FactStore
from holdfast.contracts.paging import cursor_of_event
from holdfast.contracts.short_term import ShortTerm
from holdfast.contracts.working_memory import AgentFacts, WorkingMemory
from holdfast.memory.assemble import assemble, recallable
from holdfast.memory.hydrate import hydrate
from holdfast.memory.reranking import (
    Beside,
    candidates,
    check_weight,
    with_neighbours,
    with_recency,
)
from holdfast.spi.log_entry import LogEntry
from holdfast.spi.reranking import Reranker
from holdfast.spi.wake import SessionWake
from holdfast.values.checks import (
    MAX_ID_BYTES,
    check_absent_id,
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
    check_time,
    check_vector,
)
from holdfast.values.codec import encode_object, message_to_payload
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.events import Event, Recalled
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id
from holdfast.values.limits import DEFAULT_LIMITS, first_words
from holdfast.values.memory import Assembled, Hydrated
from holdfast.values.wakes import Wake


@dataclass(frozen=True, slots=True)
class MemoryStores:
    """The stores of one tenant that a memory uses; ``long_term`` may be ``None``."""

    episodes: MemoryLog
    short_term: ShortTerm
    wakes: SessionWake
    long_term: FactStore | None = None
    query_words: int = DEFAULT_LIMITS.query_words
    """How many different words of a text ``hydrate`` and ``assemble`` use for recall."""


def own_session(agent_id: AgentId) -> str:
    """Return the id of the session for what the agent stores outside of any other session.

    >>> own_session(AgentId.parse("planner/a1"))
    'agent:planner/a1'
    """
    name = f"agent:{agent_id}"
    if len(name.encode()) <= MAX_ID_BYTES:
        return name
    return f"agent:sha256:{hashlib.sha256(str(agent_id).encode()).hexdigest()}"


class StoredMemory(AgentMemory):
    """The memory of one agent in the stores of a state; ``State.memory()`` returns it.

    ::

        memory = StoredMemory(stores, AgentId.parse("planner/a1"), session_id="s1")
    """

    def __init__(
        self, stores: MemoryStores, agent_id: AgentId | str, *, session_id: str | None = None
    ) -> None:
        self._stores = stores
        self._episodes = stores.episodes
        self._agent = AgentId.parse(agent_id)
        self._name = str(self._agent)
        self._session = None if session_id is None else check_id("session_id", session_id)
        self._home = self._session or own_session(self._agent)

    def __repr__(self) -> str:
        return f"<AgentMemory of {self._agent} in {self._session or 'all sessions'}>"

    @property
    def agent_id(self) -> AgentId:
        """The agent that the memory belongs to."""
        return self._agent

    @property
    def session_id(self) -> str | None:
        """The session that the memory is bound to; ``None`` means all sessions."""
        return self._session

    @property
    def state(self) -> WorkingMemory:
        """Working memory."""
        return WorkingMemory(self._stores.short_term, self._home)

    @property
    def facts(self) -> AgentFacts:
        """What the agent knows across sessions."""
        if self._stores.long_term is None:
            raise NotSupportedError(
                "redis", "facts", why="Redis keeps only recent data: open Postgres together with it"
            )
        return AgentFacts(self._stores.long_term, self._agent, self._session or "")

    async def record(
        self,
        type: str,
        payload: dict[str, Any] | ChatMessage,
        *,
        event_id: str | None = None,
        run_id: str | None = None,
        occurred_at: datetime | None = None,
    ) -> Event:
        """Record one event. With an ``event_id``, a retry has no further effect."""
        return await self._episodes.append_checked(
            self._entry(type, payload, event_id, run_id, occurred_at)
        )

    async def record_many(
        self, events: Sequence[Recordable], embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Record several events, all or none; ``embeddings`` are their vectors."""
        if not isinstance(events, (list, tuple)):
            raise InvalidInputError("events", f"must be a list, not {_kind(events)}")
        made = [self._recordable(f"events[{at}]", one) for at, one in enumerate(events)]
        return await self._episodes.append(made, embeddings=embeddings)

    @renamed(n="limit")
    async def recent(
        self,
        limit: int = 20,
        *,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the newest events, ascending."""
        return await self._episodes.recent(
            self._agent,
            session_id=self._session,
            limit=check_count("limit", limit),
            types=types,
            where=where,
        )

    @renamed(after=("cursor", cursor_of_event))
    async def between(
        self,
        start: datetime,
        end: datetime,
        *,
        types: list[str] | None = None,
        limit: int = 1000,
        cursor: str | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Return the events from ``start`` until before ``end``, in pages."""
        return await self._episodes.between(
            self._agent,
            start,
            end,
            session_id=self._session,
            types=types,
            limit=limit,
            cursor=cursor,
            where=where,
        )

    @renamed(k="limit")
    async def recall(
        self,
        query: str | list[float],
        limit: int = 5,
        *,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        session_id: str | None = None,
        neighbours: int = 0,
        recency_weight: float = 0.0,
        half_life_seconds: float = 7 * DAY_SECONDS,
        where: dict[str, Any] | None = None,
        explain: bool = False,
        reranker: Reranker | None = None,
    ) -> list[Recalled]:
        """Return the events that best match a question, from all sessions, the best first."""
        most = check_count("limit", limit)
        reach = check_count("neighbours", neighbours)
        weight = check_weight("recency_weight", recency_weight)
        half_life = check_seconds("half_life_seconds", half_life_seconds)
        hits = await self._episodes.recall(
            self._agent,
            query,
            limit=candidates(most) if reach or weight else most,
            session_id=session_id,
            types=types,
            since=since,
            until=until,
            where=where,
            explain=explain,
            reranker=reranker,
        )
        if reach:
            look = Beside(reach, types, since, until, where)
            hits = await with_neighbours(self._episodes, hits, look, most)
        if weight:
            hits = with_recency(hits, weight, half_life, datetime.now(UTC))
        return hits[:most]

    @renamed(k="limit", window="recent_limit")
    async def hydrate(
        self, query: str | list[float] | None = None, *, limit: int = 5, recent_limit: int = 20
    ) -> Hydrated:
        """Return what an agent needs to resume: status, state, newest events, recalled events."""
        newest, most = check_count("recent_limit", recent_limit), check_count("limit", limit)
        if isinstance(query, str):
            query = first_words(check_text("query", query), self._stores.query_words)
        elif query is not None:
            check_vector("query", query)
        return await hydrate(
            wake=self._stores.wakes.wake(self._home),
            state=self.state.snapshot,
            recent=lambda found: self._recent(found, newest),
            recall=None if query is None else self.recall(query, most),
            sessions=self._stores.wakes.wake_all(self._agent) if self._session is None else None,
            brings=self._stores.wakes.brings_events,
        )

    @renamed(k="limit", window="recent_limit", facts="facts_limit")
    async def assemble(
        self,
        query: str,
        budget_tokens: int,
        *,
        limit: int | None = None,
        recent_limit: int = 40,
        facts_limit: int = 5,
        count_tokens: Callable[[ChatMessage], int] | None = None,
    ) -> Assembled:
        """Return the context for a model's next answer, in at most ``budget_tokens``."""
        budget = check_count("budget_tokens", budget_tokens)
        bound = check_optional_count("limit", limit)
        most = recallable(budget) if bound is None else min(bound, recallable(budget))
        newest = check_count("recent_limit", recent_limit)
        facts = check_count("facts_limit", facts_limit)
        text = first_words(check_text("query", query), self._stores.query_words)
        state, recent, (recalled, problem), known = await asyncio.gather(
            self.state.get(),
            self.recent(newest),
            self._recalled(text, most),
            self._known(text, facts),
        )
        found = assemble(
            state=state,
            facts=known,
            recalled=recalled,
            window=recent,
            budget_tokens=budget,
            count_tokens=count_tokens,
        )
        return dataclasses.replace(found, degraded=found.degraded or problem)

    async def _recent(self, found: Wake | None, limit: int) -> list[Event]:
        """Return the newest events: from ``found`` if it has enough, else from the log."""
        if found is not None:
            mine = [event for event in found.events if event.agent_id == self._agent]
            whole = bool(found.events) and found.events[0].seq == 1
            if whole or len(mine) >= limit:
                return mine[len(mine) - limit :] if limit < len(mine) else mine
        return await self.recent(limit)

    async def _recalled(self, query: str, limit: int) -> tuple[list[Recalled], str]:
        """Return the recalled events; without support for recall, an empty list and the reason."""
        try:
            return await self.recall(query, limit), ""
        except NotSupportedError as error:
            return [], str(error)

    async def _known(self, query: str, limit: int) -> list[Memory]:
        if self._stores.long_term is None:
            return []
        return await self.facts.search(query, limit=limit)

    def _entry(
        self,
        type: str,
        payload: dict[str, Any] | ChatMessage,
        event_id: str | None,
        run_id: str | None,
        occurred_at: datetime | None,
    ) -> LogEntry:
        """Return the checked entry of an event to record."""
        id_, when, is_message = event_id, occurred_at, isinstance(payload, ChatMessage)
        if isinstance(payload, ChatMessage):
            _check_message_type(type)
            id_ = payload.id if event_id is None else event_id
            when = payload.created_at if occurred_at is None else occurred_at
            payload = message_to_payload(payload)
        entry = LogEntry(
            agent=self._name,
            session=self._home,
            type=check_id("type", type),
            body=encode_object(payload, field="payload"),
            id=new_id() if id_ is None else check_id("event_id", id_),
            run=check_absent_id("run_id", run_id),
            occurred_at=datetime.now(UTC) if when is None else check_time("occurred_at", when),
        )
        if type == "message" and not is_message:
            entry.check_message("payload")
        return entry

    def _event(self, type: str, payload: dict[str, Any] | ChatMessage) -> Event:
        if isinstance(payload, ChatMessage):
            _check_message_type(type)
            return Event.of_message(self._agent, self._home, payload)
        return Event(self._agent, self._home, type, payload)

    def _recordable(self, field: str, one: Recordable) -> Event:
        if isinstance(one, ChatMessage):
            return self._event("message", one)
        if isinstance(one, tuple) and len(one) == 2:
            return self._event(*one)
        if not isinstance(one, Event):
            raise InvalidInputError(
                field, f"must be (type, payload), a ChatMessage or an Event, not {_kind(one)}"
            )
        if one.agent_id != self._agent:
            raise InvalidInputError(
                f"{field}.agent_id", f"must be {self._agent}, whose memory it is"
            )
        if self._session is not None and one.session_id != self._session:
            raise InvalidInputError(
                f"{field}.session_id", f"must be {self._session!r}, the memory's session"
            )
        return one


def _check_message_type(type: str) -> None:
    if type != "message":
        raise InvalidInputError("type", f"must be 'message' for a message, not {type!r}")


def _kind(value: object) -> str:
    return type(value).__name__
