"""A naive transcript: the naive log, filtered."""

from __future__ import annotations

from holdfast.testing.models.episodes import NaiveEpisodes
from holdfast.testing.models.shared import Shared
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, VersionConflictError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId


class NaiveHistory:
    """The transcript: the naive log, filtered."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self._log = NaiveEpisodes(shared, tenant=tenant)

    async def append(
        self, agent_id: AgentId, message: ChatMessage, *, session_id: str, run_id: str = ""
    ) -> None:
        """A batch of one."""
        await self.append_many(agent_id, [message], session_id=session_id, run_id=run_id)

    async def append_many(
        self, agent_id: AgentId, messages: list[ChatMessage], *, session_id: str, run_id: str = ""
    ) -> None:
        """Message events."""
        await self._log.append(
            [Event.of_message(agent_id, session_id, one, run_id=run_id) for one in messages]
        )

    async def get_messages(
        self,
        agent_id: AgentId,
        *,
        session_id: str,
        limit: int | None = None,
        offset: int | None = None,
        recent_limit: int | None = None,
        after_seq: int | None = None,
    ) -> list[ChatMessage]:
        """All of them, then cut."""
        events = await self._log.recent(
            agent_id, session_id=session_id, limit=10**9, types=["message"]
        )
        found = [one.to_message() for one in events if one.seq > (after_seq or 0)]
        if recent_limit is not None:
            return found[max(0, len(found) - recent_limit) :]
        found = found[offset or 0 :]
        return found if limit is None else found[:limit]

    async def pop(self, agent_id: AgentId, *, session_id: str) -> ChatMessage | None:
        """Read the last, and remove what has its id."""
        found = await self.get_messages(agent_id, session_id=session_id, recent_limit=1)
        self._log.drop(session_id, [one.id for one in found])
        return found[0] if found else None

    async def replace_tail(
        self,
        agent_id: AgentId,
        *,
        session_id: str,
        after_seq: int,
        messages: list[ChatMessage],
        expected_last_seq: int,
        run_id: str = "",
    ) -> int:
        """Compare, remove, and append one after the other."""
        events = await self._log.recent(
            agent_id, session_id=session_id, limit=10**9, types=["message"]
        )
        gone = [one for one in events if one.seq > after_seq]
        last = events[-1].seq if events else 0
        new = [Event.of_message(agent_id, session_id, one, run_id=run_id) for one in messages]
        by_id: dict[str, Event] = {}
        for one in new:
            first = by_id.setdefault(one.id, one)
            if first.payload != one.payload:
                raise ConflictError("event", one.id)
        if last != expected_last_seq:
            written = [(one.id, one.run_id, one.payload) for one in by_id.values()]
            if [(one.id, one.run_id, one.payload) for one in gone] == written:
                return last
            raise VersionConflictError(
                "transcript", session_id, expected=expected_last_seq, actual=last
            )
        leaving = {one.id for one in gone}
        if any(self._log.has(session_id, one.id) for one in new if one.id not in leaving):
            raise ConflictError("event", session_id)
        self._log.drop(session_id, [one.id for one in gone])
        await self._log.append(new)
        kept = await self.get_messages(agent_id, session_id=session_id, recent_limit=1)
        return (kept[0].seq if kept else 0) or 0

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Message events only."""
        await self._log.clear(session_id, agent_id=agent_id, types=["message"])

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Message events of a run only."""
        await self._log.clear(session_id, agent_id=agent_id, run_id=run_id, types=["message"])

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """Count what is there."""
        return len(await self.get_messages(agent_id, session_id=session_id))
