"""Transcripts, as agents use them."""

from __future__ import annotations

from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.log_entry import (
    TranscriptPage,
    check_messages,
    check_scope,
    distinct,
)
from holdfast.spi.transcripts import TranscriptKey, Transcripts


class History(HistoryProvider):
    """``HistoryProvider`` on any engine.

    ::

        history = History(PostgresTranscripts(engine, tenant="acme"))
    """

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts

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
        if len(entries) > 1:
            entries = list(distinct(entries).values())
        if entries:
            await self._transcripts.append(entries)

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
        key = TranscriptKey(*check_scope(agent_id, session_id))
        page = TranscriptPage.of(limit=limit, offset=offset, last=last, after_seq=after_seq)
        return await self._transcripts.read(key, page)

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        await self._transcripts.clear(TranscriptKey(*check_scope(agent_id, session_id)), None)

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run; the rest of the session stays."""
        key = TranscriptKey(*check_scope(agent_id, session_id))
        await self._transcripts.clear(key, check_id("run_id", run_id))

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        return await self._transcripts.count(TranscriptKey(*check_scope(agent_id, session_id)))
