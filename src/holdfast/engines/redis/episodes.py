"""The events of sessions in Redis alone: they expire, and are read by position or time only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import SessionKeys, encode_agent
from holdfast.engines.redis.timestamps import ttl_argument
from holdfast.engines.redis.transcripts import DEFAULT_TTL_SECONDS
from holdfast.spi.episodes import (
    EventScope,
    EventStorage,
    NearestEvents,
    RecallQuestion,
    no_patches,
)
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.log_entry import LogEntry, another_body
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import NotSupportedError
from holdfast.values.events import Event, Recalled
from holdfast.values.states import ExpectedWrite

_NOTES = "!"
"""Prefix of an agent's name in the key of its second stream. No encoded name begins with it."""

_PAGE = 500
_ELSEWHERE = 'open a Postgres with it: holdfast.open("postgresql://…", redis="redis://…")'


class RedisEvents(EventStorage):
    """Events in Redis alone: messages in the transcript, other events in a second stream.

    A session is kept for ``ttl_seconds`` after its last event. Redis alone reads one agent in one
    session at a time, and has no search by words or meaning. ::

        events = RedisEvents(engine, tenant="acme")
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
        self._ttl = ttl_argument(ttl_seconds)

    async def append(
        self,
        entries: Sequence[LogEntry],
        vectors: Sequence[list[float]] | None,
        patches: Sequence[ExpectedWrite] = (),
    ) -> list[PositionedEntry]:
        """Append entries of one session, all or none."""
        if patches:
            raise no_patches("redis")
        if vectors is not None:
            raise self._no("embeddings", "it compares no vectors")
        session = entries[0].session
        if any(one.session != session for one in entries):
            raise self._no("a batch over several sessions", "record them one by one")
        keys = self._keys(session)
        args: list[Any] = [keys.messages, self._ttl]
        for one in entries:
            args += (_stream(one), one.run, one.id, one.occurred_at.isoformat(), _body(one))
        # Safe to repeat: with the same id it is the same event.
        answer = await self._engine.run("memory_append", (keys.index,), args, safe=True)
        if isinstance(answer, bytes):
            raise another_body(session, answer.decode())
        return [
            PositionedEntry.of(one, 1, int(seq), datetime.fromisoformat(when.decode()))
            for one, seq, when in zip(entries, *answer, strict=True)
        ]

    async def recent(self, scope: EventScope, limit: int | None, after_seq: int = 0) -> list[Event]:
        """Return the newest events of an agent in a session, ascending."""
        if limit == 0:
            return []
        keys, found = self._keys(self._one_session(scope)), list[Event]()
        agent = self._one_agent(scope)
        for stream in _streams(agent, scope.types):
            key, end, kept = keys.messages + stream, "+", 0
            while limit is None or kept < limit:
                count = max(_PAGE if scope.types or scope.where else 0, limit or _PAGE)
                page = await self._engine.command(
                    key, "xrevrange", key, end, after_seq + 1, "count", count, safe=True
                )
                fitting = _events(page, agent, scope)
                found += fitting
                kept += len(fitting)
                if len(page) < count:
                    break
                end = f"({page[-1][0].decode()}"
        found.sort(key=_seq)
        return found if limit is None else found[-limit:]

    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events of a session after the event ``after``, ascending."""
        keys, found = self._keys(self._one_session(scope)), list[Event]()
        agent, first = self._one_agent(scope), max(0, after.seq) + 1 if after else 0
        for stream in _streams(agent, scope.types):
            kept = 0
            async for page in self._pages(keys.messages + stream, first):
                fitting = _events(page, agent, scope)
                found += fitting
                kept += len(fitting)
                if kept >= limit:
                    break
        return sorted(found, key=_seq)[:limit]

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:  # noqa: ARG002 - not here
        """Raise ``NotSupportedError``: events that expire have no index of words."""
        raise self._no_recall()

    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:  # noqa: ARG002 - not here
        """Raise ``NotSupportedError``: Redis alone stores no vectors."""
        raise self._no_recall()

    async def _pages(self, key: str, first: int) -> AsyncIterator[list[Any]]:
        """Yield the entries of a stream from number ``first`` on, in pages."""
        start = str(first)
        while True:
            page = await self._engine.command(
                key, "xrange", key, start, "+", "count", _PAGE, safe=True
            )
            yield page
            if len(page) < _PAGE:
                return
            start = f"({page[-1][0].decode()}"

    def _one_session(self, scope: EventScope) -> str:
        if scope.session is None:
            raise self._no("reading all sessions at once", "name a session_id")
        return scope.session

    def _one_agent(self, scope: EventScope) -> str:
        if scope.agent is None:
            raise self._no("reading all agents at once", "name an agent_id")
        return scope.agent

    def _no_recall(self) -> NotSupportedError:
        return self._no("recall", "it keeps a window and no index of what was said")

    def _no(self, what: str, why: str) -> NotSupportedError:
        return NotSupportedError(self._engine.name, what, why=f"{why}; or {_ELSEWHERE}")

    def _keys(self, session: str) -> SessionKeys:
        return SessionKeys.of(self._tenant, session, self._engine.shards)


def _stream(entry: LogEntry) -> str:
    agent = encode_agent(entry.agent)
    return agent if entry.type == "message" else _NOTES + agent


def _streams(agent: str, types: list[str] | None) -> list[str]:
    name = encode_agent(agent)
    messages = types is None or "message" in types
    notes = types is None or any(one != "message" for one in types)
    return [name] * messages + [_NOTES + name] * notes


def _body(entry: LogEntry) -> str:
    """Return the body of an event; in the second stream its type precedes it."""
    if entry.type == "message":
        return entry.body
    return f"{encode_json(entry.type)}\n{entry.body}"


def _events(page: Iterable[Any], agent: str, scope: EventScope) -> list[Event]:
    """Return the events of a page that are in the scope."""
    found = []
    for number, (_, key, _, run, _, when, _, body) in page:
        kind, payload = "message", body.decode()
        if payload[0] == '"':
            kind, _, payload = payload.partition("\n")
            kind = decode_json(kind)
        entry = LogEntry(
            agent,
            scope.session or "",
            kind,
            payload,
            key.decode(),
            run.decode(),
            datetime.fromisoformat(when.decode()),
        )
        if scope.has(entry):
            found.append(entry.to_event(1, int(number.partition(b"-")[0])))
    return found


def _seq(event: Event) -> int:
    return event.seq
