"""Transcripts in Redis, which expire after their time to live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import SessionKeys, encode_agent
from holdfast.engines.redis.timestamps import ttl_argument
from holdfast.spi.log_entry import LogEntry, TranscriptPage, another_body
from holdfast.spi.transcripts import MessageRow, Tail, TranscriptKey, Transcripts
from holdfast.values.errors import VersionConflictError

DEFAULT_TTL_SECONDS = 7 * 86_400.0
"""The default time for which a transcript is kept after its last message."""


class RedisTranscripts(Transcripts):
    """Stores transcripts, one stream for each agent of a session.

    A transcript is kept for ``ttl_seconds`` after its last message. With ``None`` it is kept until
    it is cleared: a retention of ``PERMANENT`` needs this. After a transcript has expired, its
    numbers start anew; after a clear they continue. ::

        transcripts = RedisTranscripts(engine, tenant="acme", ttl_seconds=None)
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

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        first = entries[0]
        keys, agent = self._keys(first.session), encode_agent(first.agent)
        args: list[Any] = [keys.messages, agent, first.run, self._ttl]
        for entry in entries:
            args += (entry.id, entry.occurred_at.isoformat(), entry.body)
        # Safe to repeat: with the same id it is the same message.
        other = await self._engine.run(
            "history_append", (keys.index, keys.messages + agent), args, safe=True
        )
        if other is not None:
            raise another_body(first.session, other.decode())

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        stream = self._keys(key.session).transcript(key.agent)
        if 0 in {page.last, page.limit}:
            return []
        if page.last is not None:
            newest = ("xrevrange", stream, "+", "-", "count", page.last)
            return _rows(reversed(await self._engine.command(stream, *newest, safe=True)))
        start = (page.after_seq or 0) + 1
        if page.offset:
            bounds = (start, page.offset, "" if page.limit is None else page.limit)
            return _rows(await self._engine.run("history_page", (stream,), bounds, safe=True))
        count = () if page.limit is None else ("count", page.limit)
        page_of = ("xrange", stream, start, "+", *count)
        return _rows(await self._engine.command(stream, *page_of, safe=True))

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove and return the newest message."""
        keys = self._keys(key.session)
        # Not safe to repeat: the repeat would remove another message.
        popped = await self._engine.run(
            "history_pop", (keys.index, keys.transcript(key.agent)), (), safe=False
        )
        return None if popped is None else _rows([popped])[0]

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the newest messages, all or none. Returns the newest number."""
        keys, agent = self._keys(key.session), encode_agent(key.agent)
        run = tail.entries[0].run if tail.entries else ""
        args: list[Any] = [keys.messages, agent, run, self._ttl]
        args += (tail.after_seq, tail.expected_last_seq)
        for entry in tail.entries:
            args += (entry.id, entry.occurred_at.isoformat(), entry.body)
        # Safe to repeat: a tail that is there already stays.
        answer = await self._engine.run(
            "history_replace", (keys.index, keys.messages + agent), args, safe=True
        )
        match answer:
            case b"OK", last:
                return int(last)
            case b"OTHER", id_:
                raise another_body(key.session, id_.decode())
        raise VersionConflictError(
            "transcript", key.session, expected=tail.expected_last_seq, actual=int(answer[1])
        )

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of a transcript, or only those of a run."""
        keys = self._keys(key.session)
        # Not safe to repeat: the repeat could delete another process's messages in between.
        await self._engine.run(
            "history_clear",
            (keys.index, keys.transcript(key.agent)),
            (encode_agent(key.agent), run or ""),
            safe=False,
        )

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages in a transcript."""
        stream = self._keys(key.session).transcript(key.agent)
        return int(await self._engine.command(stream, "xlen", stream, safe=True))

    def _keys(self, session_id: str) -> SessionKeys:
        return SessionKeys.of(self._tenant, session_id, self._engine.shards)


def _rows(entries: Iterable[Any]) -> list[MessageRow]:
    return [
        (
            body,
            key.decode(),
            datetime.fromisoformat(when.decode()),
            int(number.partition(b"-")[0]),
        )
        for number, (_, key, _, _, _, when, _, body) in entries
    ]
