"""Transcripts in the process: the session log, read as messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import islice

from holdfast.backends.inmemory.engine import InMemory
from holdfast.backends.inmemory.session_log import Row, SessionLog
from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.log_entry import TranscriptPage, check_messages, check_scope

_MESSAGES = frozenset({"message"})


class InMemoryHistory(HistoryProvider):
    """``HistoryProvider`` on the session log of the in-memory engine.

    >>> history = InMemoryHistory(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._log = engine.table(tenant, SessionLog)

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
        rows = [Row(**dataclasses.asdict(entry)) for entry in entries]
        self._log.append(rows, self._engine.now())

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
        found = self._log.transcript(session, agent)
        if page.last is not None:
            return _messages(reversed(list(islice(reversed(found.values()), page.last))))
        rows: Iterable[Row] = found.values()
        if page.after_seq is not None:
            rows = (row for row in rows if row.seq > (page.after_seq or 0))
        end = None if page.limit is None else page.offset + page.limit
        return _messages(islice(rows, page.offset, end))

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        agent, session = check_scope(agent_id, session_id)
        self._log.clear(session, agent=agent, types=_MESSAGES)

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run; the rest of the session stays."""
        agent, session = check_scope(agent_id, session_id)
        self._log.clear(session, agent=agent, run=check_id("run_id", run_id), types=_MESSAGES)

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        agent, session = check_scope(agent_id, session_id)
        return len(self._log.transcript(session, agent))


def _messages(rows: Iterable[Row]) -> list[ChatMessage]:
    return [row.to_message(row.seq) for row in rows]
