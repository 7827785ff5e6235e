"""What happened in a session, in Redis alone: as long as it lives, and by place and time only."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import Any

from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import SessionKeys, encode_agent
from holdfast.backends.redis.short_term import RedisStates
from holdfast.backends.redis.transcripts import DEFAULT_TTL_SECONDS
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_ids,
    check_list,
    check_seconds,
    check_time,
)
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.core.errors import InvalidInputError, NotSupportedError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.agent_memory import MemoryLog
from holdfast.kernel.storage.episodes import Event, Recalled
from holdfast.kernel.storage.log_entry import LogEntry, another_body, check_embeddings, distinct
from holdfast.kernel.storage.wake import SessionWake, Wake, WakeStatus

_NOTES = "!"
"""Stands before an agent in the name of its other stream; an encoded name never holds it."""

_PAGE = 500
_ELSEWHERE = 'open a Postgres with it: holdfast.open("postgresql://…", redis="redis://…")'


class RedisMemoryLog(MemoryLog, SessionWake):
    """The session log of a Redis by itself: messages in the transcript, the rest beside it.

    It is kept for ``ttl_seconds`` after its last event. Redis by itself looks into one session
    only, and recalls nothing by words or meaning. ::

        log = RedisMemoryLog(engine, tenant="acme")
    """

    def __init__(
        self,
        engine: Redis,
        *,
        tenant: str = "default",
        ttl_seconds: float | None = DEFAULT_TTL_SECONDS,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._states = RedisStates(engine, tenant=tenant)
        self.ttl_seconds = ttl_seconds

    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Add events of one session to its log, all or none; returns them with their place."""
        check_list("events", events)
        entries = [LogEntry.of_event(f"events[{at}]", event) for at, event in enumerate(events)]
        if check_embeddings(embeddings, len(entries)) is not None:
            raise self._no("embeddings", "it compares no vectors")
        unique = list(distinct(entries).values())
        if not unique:
            return []
        if len({one.session for one in unique}) > 1:
            raise self._no("a batch over several sessions", "record them one by one")
        ttl = self.ttl_seconds
        window = "" if ttl is None else math.ceil(check_seconds("ttl_seconds", ttl) * 1000)
        keys = self._keys(unique[0].session)
        args: list[Any] = [keys.messages, window]
        for one in unique:
            args += (_stream(one), one.run, one.id, one.occurred_at.isoformat(), _body(one))
        # Safe to repeat: with the same id it is the same event.
        answer = await self._engine.run("memory_append", (keys.index,), args, safe=True)
        if isinstance(answer, bytes):
            raise another_body(unique[0].session, answer.decode())
        places = {one.key: int(seq) for one, seq in zip(unique, answer, strict=True)}
        return [one.to_event(1, places[one.key]) for one in entries]

    async def recent(
        self,
        agent_id: AgentId,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
    ) -> list[Event]:
        """The newest events of an agent in a session, ascending."""
        agent, wanted = AgentId.parse(agent_id), _types(types)
        limit = check_count("limit", limit)
        session = self._one_session(session_id)
        found: list[Event] = []
        for stream in _streams(agent, wanted):
            key, end, kept = self._keys(session).messages + stream, "+", 0
            while kept < limit:
                count = max(_PAGE if wanted else 0, limit)
                page = await self._engine.command(
                    key, "xrevrange", key, end, "-", "count", count, safe=True
                )
                fitting = [one for one in _events(page, agent, session) if _is(one, wanted)]
                found += fitting
                kept += len(fitting)
                if len(page) < count:
                    break
                end = f"({page[-1][0].decode()}"
        return sorted(found, key=_seq)[-limit:] if limit else []

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
        """What an agent did in a session from ``start`` until before ``end``, in pages."""
        agent, wanted = AgentId.parse(agent_id), _types(types)
        start, end = check_time("start", start), check_time("end", end)
        limit = check_count("limit", limit)
        if after is not None and not isinstance(after, Event):
            raise InvalidInputError("after", "must be the last event of the page before")
        session = self._one_session(session_id)

        def fits(one: Event) -> bool:
            return _is(one, wanted) and start <= one.occurred_at < end

        first = max(0, after.seq) + 1 if after else 0
        found: list[Event] = []
        for stream in _streams(agent, wanted):
            kept = 0
            async for page in self._pages(self._keys(session).messages + stream, first):
                fitting = [one for one in _events(page, agent, session) if fits(one)]
                found += fitting
                kept += len(fitting)
                if kept >= limit:
                    break
        return sorted(found, key=_seq)[:limit]

    async def recall(self, *_question: Any, **_narrowed: Any) -> list[Recalled]:
        """Not here: a window that expires has no index of words, and no vectors."""
        raise self._no("recall", "it keeps a window and no index of what was said")

    async def wake(self, session_id: str) -> Wake:
        """New, until something was written to its log or state; and again when all has expired."""
        keys = self._keys(check_id("session_id", session_id))
        numbered = await self._engine.command(keys.index, "hexists", keys.index, "s", safe=True)
        known = numbered or (await self._states.read(session_id, ())).version > 0
        return Wake(WakeStatus.WARM if known else WakeStatus.NEW)

    async def _pages(self, key: str, first: int) -> AsyncIterator[list[Any]]:
        """A stream from a number on, a part at a time."""
        start = str(first)
        while True:
            page = await self._engine.command(
                key, "xrange", key, start, "+", "count", _PAGE, safe=True
            )
            yield page
            if len(page) < _PAGE:
                return
            start = f"({page[-1][0].decode()}"

    def _one_session(self, session_id: str | None) -> str:
        if session_id is None:
            raise self._no("reading all sessions at once", "name a session_id")
        return check_id("session_id", session_id)

    def _no(self, what: str, why: str) -> NotSupportedError:
        return NotSupportedError(self._engine.name, what, why=f"{why}; or {_ELSEWHERE}")

    def _keys(self, session_id: str) -> SessionKeys:
        return SessionKeys.of(self._tenant, session_id, self._engine.shards)


def _stream(entry: LogEntry) -> str:
    agent = encode_agent(entry.agent)
    return agent if entry.type == "message" else _NOTES + agent


def _streams(agent: AgentId, types: frozenset[str] | None) -> list[str]:
    name = encode_agent(str(agent))
    messages = types is None or "message" in types
    notes = types is None or bool(types - {"message"})
    return [name] * messages + [_NOTES + name] * notes


def _body(entry: LogEntry) -> str:
    """The body; with its type in front where the stream does not tell it."""
    if entry.type == "message":
        return entry.body
    return f"{encode_json(entry.type)}\n{entry.body}"


def _events(entries: Iterable[Any], agent: AgentId, session: str) -> Iterable[Event]:
    for number, (_, key, _, run, _, when, _, body) in entries:
        kind, payload = "message", body.decode()
        if payload[0] == '"':
            kind, _, payload = payload.partition("\n")
            kind = decode_json(kind)
        entry = LogEntry(
            str(agent),
            session,
            kind,
            payload,
            key.decode(),
            run.decode(),
            datetime.fromisoformat(when.decode()),
        )
        yield entry.to_event(1, int(number.partition(b"-")[0]))


def _is(event: Event, types: frozenset[str] | None) -> bool:
    return types is None or event.type in types


def _types(types: list[str] | None) -> frozenset[str] | None:
    return None if types is None else frozenset(check_ids("types", types))


def _seq(event: Event) -> int:
    return event.seq
