"""Transcripts at the speed of the hot log, with the truth in the durable one."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.hot_entry import PlacedEntry
from holdfast.kernel.storage.hot_log import Window
from holdfast.kernel.storage.log_entry import TranscriptPage, check_messages, check_scope
from holdfast.memory.hybrid_log import HybridLog, once


class HybridHistory(HistoryProvider):
    """``HistoryProvider`` over a hot and a durable log; ``durable`` is that of the durable engine.

    ::

        history = HybridHistory(log, durable_history)
    """

    def __init__(self, log: HybridLog, durable: HistoryProvider) -> None:
        self._log = log
        self._durable = durable

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
        await self._log.append(
            check_messages(agent_id, messages, session_id=session_id, run_id=run_id)
        )

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
        if page.last is not None:
            enough, newest = await self._log.newest(session, page.last, _chosen(agent))
            if enough:
                return [one.entry.to_message(one.seq) for one in newest]
            found = await self._merged(agent_id, session, newest, last=page.last)
            return found[len(found) - page.last :] if page.last < len(found) else found
        window = await self._log.window(session)
        mine = _mine(window, agent)
        if window.floor == (0, 0):
            found = [
                one.entry.to_message(one.seq) for one in mine if one.seq > (page.after_seq or 0)
            ]
        else:
            late = [one for one in mine if one.entry.id in window.unflushed]
            if not late:
                return await self._durable.get_messages(
                    agent_id, session_id=session, limit=limit, offset=offset, after_seq=after_seq
                )
            most = None if page.limit is None else page.limit + page.offset
            found = await self._merged(
                agent_id, session, late, limit=most, after_seq=page.after_seq
            )
        until = len(found) if page.limit is None else page.offset + page.limit
        return found[page.offset : until]

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        agent, session = check_scope(agent_id, session_id)
        await self._log.clear(session, agent=agent, types=["message"])

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run; the rest of the session stays."""
        agent, session = check_scope(agent_id, session_id)
        run = check_id("run_id", run_id)
        await self._log.clear(session, agent=agent, run=run, types=["message"])

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        agent, session = check_scope(agent_id, session_id)
        window = await self._log.window(session)
        mine = _mine(window, agent)
        if window.floor == (0, 0):
            return len(mine)
        late = [one.entry.id for one in mine if one.entry.id in window.unflushed]
        stored = await self._log.durable.count_messages(session, agent, besides=late)
        return stored + len(late)

    async def _merged(
        self,
        agent_id: AgentId,
        session: str,
        late: list[PlacedEntry],
        *,
        limit: int | None = None,
        last: int | None = None,
        after_seq: int | None = None,
    ) -> list[ChatMessage]:
        """The durable transcript and what is not in it yet, in the order of the log."""
        stored = await self._durable.get_messages(
            agent_id, session_id=session, limit=limit, last=last, after_seq=after_seq
        )
        known = {message.id for message in stored}
        places = {one.entry.id: one.place for one in late}
        fresh = [
            one.entry.to_message(one.seq)
            for one in late
            if one.entry.id not in known and one.seq > (after_seq or 0)
        ]
        if not fresh:
            return stored
        # A number grows with its epoch, so that it alone orders the messages of both.
        return sorted([*stored, *fresh], key=lambda one: (one.seq or 0, places.get(one.id, (0, 0))))


def _chosen(agent: str) -> Callable[[PlacedEntry], bool]:
    return lambda one: one.entry.agent == agent and one.entry.type == "message"


def _mine(window: Window, agent: str) -> list[PlacedEntry]:
    """The agent's messages in a window, each once."""
    return once(filter(_chosen(agent), window.entries))
