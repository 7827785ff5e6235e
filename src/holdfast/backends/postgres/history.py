"""Transcripts on Postgres: the session log, read as messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.backends.postgres.session_log import append
from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.codec import message_from_body
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.log_entry import TranscriptPage, check_messages, check_scope

_SQL = load("history")


class PostgresHistory(HistoryProvider):
    """``HistoryProvider`` on the session log of the Postgres engine.

    ::

        history = PostgresHistory(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

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
        await append(self._engine, self._tenant, entries)

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
        scope = (self._tenant, session, agent)
        if page.last is not None:
            rows = await self._engine.fetch(_SQL["newest"], *scope, page.last, safe=True)
            return _messages(reversed(rows))
        bounds = (page.limit, page.offset, page.after_seq or 0)
        return _messages(await self._engine.fetch(_SQL["page"], *scope, *bounds, safe=True))

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        agent, session = check_scope(agent_id, session_id)
        await self._engine.fetch(_SQL["clear"], self._tenant, session, agent, None, safe=False)

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run; the rest of the session stays."""
        agent, session = check_scope(agent_id, session_id)
        run = check_id("run_id", run_id)
        await self._engine.fetch(_SQL["clear"], self._tenant, session, agent, run, safe=False)

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        agent, session = check_scope(agent_id, session_id)
        count: int = await self._engine.fetchval(
            _SQL["count"], self._tenant, session, agent, safe=True
        )
        return count


def _messages(rows: Iterable[Any]) -> list[ChatMessage]:
    return [
        message_from_body(body, id=key, created_at=when, seq=seq) for body, key, when, seq in rows
    ]
