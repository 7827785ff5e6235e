"""Transcripts, as agents use them."""

from __future__ import annotations

from holdfast.contracts.front import Front
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.log_entry import LogEntry, TranscriptPage, distinct
from holdfast.spi.transcripts import TranscriptKey, Transcripts
from holdfast.values.checks import check_id, check_list, check_optional_id
from holdfast.values.content import ChatMessage
from holdfast.values.identity import Agent
from holdfast.values.stored_messages import messages_from_rows


class History(Front, HistoryProvider):
    """``HistoryProvider`` on any engine.

    ::

        history = History(PostgresTranscripts(engine, tenant="acme"))
    """

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts

    async def append(
        self, agent_id: Agent, message: ChatMessage, *, session_id: str, run_id: str = ""
    ) -> None:
        """Add one message at the end; again with the same id and body does nothing."""
        await self.append_many(agent_id, [message], session_id=session_id, run_id=run_id)

    async def append_many(
        self,
        agent_id: Agent,
        messages: list[ChatMessage],
        *,
        session_id: str,
        run_id: str = "",
    ) -> None:
        """Add messages at the end, next to each other: all of them or none."""
        key = self._key(agent_id, session_id)
        run = check_optional_id("run_id", run_id)
        check_list("messages", messages)
        entries = [
            LogEntry.of_message(
                f"messages[{at}]", one, agent=key.agent, session=key.session, run=run
            )
            for at, one in enumerate(messages)
        ]
        for at, entry in enumerate(entries):
            self._limits.check_value(f"messages[{at}]", entry.body)
        if len(entries) > 1:
            entries = list(distinct(entries).values())
        if entries:
            await self._transcripts.append(entries)

    async def get_messages(
        self,
        agent_id: Agent,
        *,
        session_id: str,
        limit: int | None = None,
        offset: int | None = None,
        last: int | None = None,
        after_seq: int | None = None,
    ) -> list[ChatMessage]:
        """The transcript, ascending, or a part of it."""
        key = self._key(agent_id, session_id)
        page = TranscriptPage.of(limit=limit, offset=offset, last=last, after_seq=after_seq)
        return messages_from_rows(await self._transcripts.read(key, page))

    async def clear(self, agent_id: Agent, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        await self._transcripts.clear(self._key(agent_id, session_id), None)

    async def clear_run(self, agent_id: Agent, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run; the rest of the session stays."""
        key = self._key(agent_id, session_id)
        await self._transcripts.clear(key, check_id("run_id", run_id))

    async def count_messages(self, agent_id: Agent, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        return await self._transcripts.count(self._key(agent_id, session_id))

    def _key(self, agent_id: Agent, session_id: str) -> TranscriptKey:
        return TranscriptKey(self._scope.agent(agent_id), self._scope.id("session_id", session_id))
