"""A naive ``AgentMemory``: the naive stores one after the other, and no more than it must say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.testing.models.episodes import NaiveEpisodes
from holdfast.testing.models.long_term import NaiveLongTerm
from holdfast.testing.models.shared import Shared
from holdfast.testing.models.short_term import NaiveShortTerm
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id
from holdfast.values.memory import Assembled, Hydrated
from holdfast.values.states import StateSnapshot
from holdfast.values.wakes import WakeStatus


class NaiveState:
    """The state of one session."""

    def __init__(self, states: NaiveShortTerm, session: str) -> None:
        self._states = states
        self._session = session

    async def get(self, *, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The state, or some keys."""
        return await self._states.get_state(self._session, keys=keys)

    async def snapshot(self) -> StateSnapshot:
        """The state with its version."""
        return await self._states.snapshot(self._session)

    async def update(self, patch: dict[str, Any], **how: Any) -> int:
        """Merge."""
        return await self._states.update_state(self._session, patch, **how)

    async def set(self, state: dict[str, Any], **how: Any) -> int:
        """Replace."""
        return await self._states.set_state(self._session, state, **how)

    async def clear(self) -> None:
        """Remove."""
        await self._states.clear(self._session)


class NaiveFacts:
    """The facts of one agent."""

    def __init__(self, facts: NaiveLongTerm, agent: AgentId) -> None:
        self._facts = facts
        self._agent = agent

    async def save(self, content: str) -> str:
        """Keep one."""
        return await self._facts.save(self._agent, content)

    async def search(self, query: str, *, limit: int = 10) -> Any:
        """Ask for some."""
        return await self._facts.search(self._agent, query, limit=limit)


class NaiveMemory:
    """The memory of one agent, in one session or in all."""

    def __init__(
        self, shared: Shared, agent: str, *, session_id: str | None = None, tenant: str = "default"
    ) -> None:
        self._agent = AgentId.parse(agent)
        self._session = session_id
        self._home = session_id or f"agent:{agent}"
        self._log = NaiveEpisodes(shared, tenant=tenant)
        self._states = NaiveShortTerm(shared, tenant=tenant)
        self.state = NaiveState(self._states, self._home)
        self.facts = NaiveFacts(NaiveLongTerm(shared, tenant=tenant), self._agent)

    async def record(
        self,
        type: str,
        payload: dict[str, Any] | ChatMessage,
        *,
        event_id: str | None = None,
        run_id: str = "",
        occurred_at: datetime | None = None,
    ) -> Event:
        """One event."""
        if isinstance(payload, ChatMessage):
            event = Event.of_message(self._agent, self._home, payload, run_id=run_id)
        else:
            when = occurred_at or datetime.now(UTC)
            name = event_id or new_id()
            event = Event(self._agent, self._home, type, payload, name, run_id, when)
        [placed] = await self._log.append([event])
        return placed

    async def record_many(self, events: Sequence[tuple[str, dict[str, Any]]]) -> list[Event]:
        """One after the other: the state machine sends new ones only."""
        made = [Event(self._agent, self._home, type_, payload) for type_, payload in events]
        return await self._log.append(made)

    async def recent(self, limit: int = 20, **how: Any) -> list[Event]:
        """The newest."""
        return await self._log.recent(self._agent, session_id=self._session, limit=limit, **how)

    async def between(self, start: datetime, end: datetime, **how: Any) -> list[Event]:
        """A span of time."""
        return await self._log.between(self._agent, start, end, session_id=self._session, **how)

    async def recall(self, query: str, limit: int = 5, **how: Any) -> list[Recalled]:
        """By words, from all sessions."""
        return await self._log.recall(self._agent, query, limit=limit, **how)

    async def hydrate(
        self, query: str | None = None, *, limit: int = 5, recent_limit: int = 20
    ) -> Hydrated:
        """Each read by itself."""
        kept = await self.state.snapshot()
        said = await self._log.used(self._home)
        recent = await self.recent(recent_limit)
        known = kept.version or said or (self._session is None and recent)
        return Hydrated(
            WakeStatus.WARM if known else WakeStatus.NEW,
            state=kept.state,
            version=kept.version,
            recent=recent,
            recalled=[] if query is None else await self.recall(query, limit),
        )

    async def assemble(
        self, query: str, budget_tokens: int, *, recent_limit: int = 40, facts_limit: int = 0
    ) -> Assembled:
        """The state and the newest events: the state machine asks for nothing else, with room."""
        if facts_limit or await self.recall(query):
            raise ConflictError("model", "assemble", "the naive model knows neither")
        state = await self.state.get()
        messages = [ChatMessage.system(f"Working state:\n{_text(state)}")] if state else []
        for event in await self.recent(recent_limit):
            if event.type == "message":
                messages.append(event.to_message())
            else:
                said = ", ".join(f"{key}: {value}" for key, value in event.payload.items())
                messages.append(ChatMessage.system(f"[{event.type}] {said}"))
        return Assembled(messages, budget_tokens)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
