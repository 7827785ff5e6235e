"""A memory service of Google ADK on ``state.episodes``.

The memories of a user of an app are stored in a separate log: deleting a memory does not change the
session that it came from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import time as platform_time
from google.adk.sessions.session import Session
from google.genai import types

from holdfast.adapters.google_adk.records import time_of
from holdfast.adapters.keys import key_of, short_id_of
from holdfast.blocking import Portal
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.values.errors import ConflictError
from holdfast.values.events import Event as LogEvent
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id
from holdfast.wiring.state import State

_MEMORY = "adk.memory"
_LIMIT = 10


class HoldfastMemoryService(BaseMemoryService):
    """Stores what was said as memories, for ``Runner(memory_service=...)``; any loop may use it.

    ``state`` determines the engine, the tenant, the owner and the embedder: with one, a search
    finds memories by meaning as well as by words. A search returns at most ``limit``. ::

        memory = HoldfastMemoryService(state)
        await memory.add_session_to_memory(session)
        found = await memory.search_memory(app_name="tides", user_id="ana", query="harbour")
    """

    def __init__(self, state: State | Portal, *, limit: int = _LIMIT) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that have text. Events added before are not changed."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events that have text, all or none. Events that were added before are not changed."""
        del session_id
        made = [
            MemoryEntry(
                id=one.id,
                author=one.author,
                timestamp=time_of("events.timestamp", one.timestamp).isoformat(),
                content=one.content,
                custom_metadata=dict(custom_metadata or {}),
            )
            for one in events
            if one.content is not None
        ]
        await self._portal.arun(self._add(key_of("adk-memory", app_name, user_id), made))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories that have text, all or none. A memory without an id gets a new id."""
        made = [
            one.model_copy(
                update={
                    "id": one.id or new_id(),
                    "custom_metadata": {**(custom_metadata or {}), **one.custom_metadata},
                }
            )
            for one in memories
        ]
        await self._portal.arun(self._add(key_of("adk-memory", app_name, user_id), made))

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the memories of a user of an app that are nearest to a query, the best first."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await self._portal.arun(
            self._search(key_of("adk-memory", app_name, user_id), query)
        )
        return SearchMemoryResponse(
            memories=[MemoryEntry.model_validate_json(json.dumps(one["memory"])) for one in found]
        )

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory. Adding its session again does not add it again."""
        if memory_id:
            log = key_of("adk-memory", app_name, user_id)
            await self._portal.arun(self._delete(log, short_id_of(memory_id)))

    # A state's stores are read on its own loop, so all of these run there.

    @property
    def _episodes(self) -> EpisodicMemory:
        return self._portal.state.episodes

    async def _add(self, log: str, memories: Sequence[MemoryEntry]) -> None:
        rows = {short_id_of(one.id): _row(log, one) for one in memories if _text(one.content)}
        if not rows:
            return
        deleted = await self._deleted(log, list(rows))
        added = [row for key, row in rows.items() if key not in deleted]
        try:
            await self._episodes.append(added)
        except ConflictError:
            # A memory with one of these ids has another content: it stays as it is.
            there = {one.id for one in await self._episodes.get(log, list(rows))}
            await self._episodes.append([one for one in added if one.id not in there])

    async def _search(self, log: str, query: str) -> list[dict[str, Any]]:
        hits = await self._episodes.recall(
            AgentId.parse(log), query, session_id=log, types=[_MEMORY], limit=self._limit
        )
        # One that was deleted while it was added may be there; it is not returned.
        deleted = await self._deleted(log, [hit.event.id for hit in hits])
        return [hit.event.payload for hit in hits if hit.event.id not in deleted]

    async def _delete(self, log: str, memory: str) -> None:
        # Marked as deleted first: if the process dies after this, no search returns the memory.
        await self._portal.state.short_term.update_state(log, {memory: True})
        await self._episodes.clear(log, run_id=memory)

    async def _deleted(self, log: str, ids: Sequence[str]) -> set[str]:
        return set(await self._portal.state.short_term.get_state(log, keys=ids))


def _row(log: str, memory: MemoryEntry) -> LogEvent:
    stored = memory.model_dump(mode="json", exclude_none=True)
    key = short_id_of(memory.id or "")
    occurred = _occurred(memory.timestamp)
    # The run is the id, so that one memory can be cleared.
    return LogEvent(
        AgentId.parse(log),
        log,
        _MEMORY,
        {"text": _text(memory.content), "memory": stored},
        id=key,
        run_id=key,
        occurred_at=occurred,
    )


def _text(content: types.Content) -> str:
    return " ".join(part.text for part in content.parts or [] if part.text)


def _occurred(timestamp: str | None) -> datetime:
    """Return the time of a memory, given as any text; the current time if it is not ISO 8601."""
    try:
        found = datetime.fromisoformat(timestamp or "")
    except ValueError:
        return time_of("timestamp", platform_time.get_time())
    return found if found.tzinfo else found.replace(tzinfo=UTC)
