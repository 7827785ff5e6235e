"""Transcripts in Redis, for as long as their time to live."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import SessionKeys, encode_agent
from holdfast.kernel.core.checks import check_id, check_seconds
from holdfast.kernel.core.codec import message_from_body
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.log_entry import (
    TranscriptPage,
    another_body,
    check_messages,
    check_scope,
    distinct,
)

DEFAULT_TTL_SECONDS = 7 * 86_400.0
"""How long a transcript is kept after its last message, unless the store is told otherwise."""


class RedisHistory(HistoryProvider):
    """``HistoryProvider`` in one stream for each agent of a session.

    A transcript is kept for ``ttl_seconds`` after its last message, and with ``None`` until it is
    cleared: only so is a retention of ``PERMANENT`` what it says. One that has expired begins anew,
    numbers included; after a clear the numbers go on. ::

        history = RedisHistory(engine, tenant="acme", ttl_seconds=None)
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
        self.ttl_seconds = ttl_seconds

    async def append(
        self, agent_id: AgentId, message: ChatMessage, *, session_id: str, run_id: str = ""
    ) -> None:
        """Add one message at the end; again with the same id and body does nothing."""
        await self.append_many(agent_id, [message], session_id=session_id, run_id=run_id)

    async def append_many(
        self,
        agent_id: AgentId,
        messages: list[ChatMessage],
        *,
        session_id: str,
        run_id: str = "",
    ) -> None:
        """Add messages at the end, next to each other: all of them or none."""
        entries = check_messages(agent_id, messages, session_id=session_id, run_id=run_id)
        if not entries:
            return
        ttl = self.ttl_seconds
        window = "" if ttl is None else math.ceil(check_seconds("ttl_seconds", ttl) * 1000)
        first = entries[0]
        keys, agent = self._keys(session_id), encode_agent(first.agent)
        args: list[Any] = [keys.messages, agent, first.run, window]
        for entry in distinct(entries).values() if len(entries) > 1 else entries:
            args += (entry.id, entry.occurred_at.isoformat(), entry.body)
        # Safe to repeat: with the same id it is the same message.
        other = await self._engine.run(
            "history_append", (keys.index, keys.messages + agent), args, safe=True
        )
        if other is not None:
            raise another_body(session_id, other.decode())

    async def get_messages(
        self,
        agent_id: AgentId,
        *,
        session_id: str,
        limit: int | None = None,
        offset: int | None = None,
        last: int | None = None,
        after_seq: int | None = None,
    ) -> list[ChatMessage]:
        """The transcript, ascending, or a part of it."""
        agent, session = check_scope(agent_id, session_id)
        page = TranscriptPage.of(limit=limit, offset=offset, last=last, after_seq=after_seq)
        key = self._keys(session).transcript(agent)
        if 0 in {page.last, page.limit}:
            return []
        if page.last is not None:
            newest = ("xrevrange", key, "+", "-", "count", page.last)
            return _messages(reversed(await self._engine.command(key, *newest, safe=True)))
        start = (page.after_seq or 0) + 1
        if page.offset:
            bounds = (start, page.offset, "" if page.limit is None else page.limit)
            return _messages(await self._engine.run("history_page", (key,), bounds, safe=True))
        count = () if page.limit is None else ("count", page.limit)
        page_of = ("xrange", key, start, "+", *count)
        return _messages(await self._engine.command(key, *page_of, safe=True))

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        agent, session = check_scope(agent_id, session_id)
        await self._clear(agent, session, "")

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run; the rest of the session stays."""
        agent, session = check_scope(agent_id, session_id)
        await self._clear(agent, session, check_id("run_id", run_id))

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        agent, session = check_scope(agent_id, session_id)
        key = self._keys(session).transcript(agent)
        count: int = await self._engine.command(key, "xlen", key, safe=True)
        return count

    async def _clear(self, agent: str, session: str, run: str) -> None:
        keys = self._keys(session)
        # Not safe to repeat: in between, somebody else's messages would be removed by ours.
        await self._engine.run(
            "history_clear",
            (keys.index, keys.transcript(agent)),
            (encode_agent(agent), run),
            safe=False,
        )

    def _keys(self, session_id: str) -> SessionKeys:
        return SessionKeys.of(self._tenant, session_id, self._engine.shards)


def _messages(entries: Iterable[Any]) -> list[ChatMessage]:
    return [
        message_from_body(
            body.decode(),
            id=key.decode(),
            created_at=datetime.fromisoformat(when.decode()),
            seq=int(number.partition(b"-")[0]),
        )
        for number, (_, key, _, _, _, when, _, body) in entries
    ]
