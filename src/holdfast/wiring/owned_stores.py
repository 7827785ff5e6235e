"""The stores of one owner: the same contracts, on ids that nobody else can name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.kernel.core.checks import check_list
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.core.owners import owned_id
from holdfast.kernel.storage.agent_memory import MemoryLog
from holdfast.kernel.storage.episodes import Event, Recalled, Session
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.log_entry import LogEntry
from holdfast.kernel.storage.long_term import LongTermMemory, Memory
from holdfast.kernel.storage.short_term import ShortTerm, StateSnapshot
from holdfast.kernel.storage.wake import SessionWake, Wake, WakeStatus
from holdfast.wiring.owner_scope import OwnerScope, names_own_ids


@names_own_ids
class OwnedHistory(HistoryProvider):
    """The transcripts of one owner."""

    def __init__(self, inner: HistoryProvider, scope: OwnerScope) -> None:
        self._inner = inner
        self._scope = scope

    async def append(
        self, agent_id: AgentId, message: ChatMessage, *, session_id: str, run_id: str = ""
    ) -> None:
        """Add one message at the end."""
        agent, session = self._key(agent_id, session_id)
        await self._inner.append(agent, message, session_id=session, run_id=run_id)

    async def append_many(
        self,
        agent_id: AgentId,
        messages: list[ChatMessage],
        *,
        session_id: str,
        run_id: str = "",
    ) -> None:
        """Add messages at the end."""
        agent, session = self._key(agent_id, session_id)
        await self._inner.append_many(agent, messages, session_id=session, run_id=run_id)

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
        """The transcript, ascending."""
        agent, session = self._key(agent_id, session_id)
        return await self._inner.get_messages(
            agent, session_id=session, limit=limit, offset=offset, last=last, after_seq=after_seq
        )

    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Remove the agent's messages in a session."""
        agent, session = self._key(agent_id, session_id)
        await self._inner.clear(agent, session_id=session)

    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Remove the agent's messages of one run."""
        agent, session = self._key(agent_id, session_id)
        await self._inner.clear_run(agent, session_id=session, run_id=run_id)

    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """How many messages the agent has in a session."""
        agent, session = self._key(agent_id, session_id)
        return await self._inner.count_messages(agent, session_id=session)

    def _key(self, agent_id: AgentId, session_id: str) -> tuple[AgentId, str]:
        return self._scope.agent(agent_id), self._scope.session("session_id", session_id)


@names_own_ids
class OwnedLog(MemoryLog):
    """What an owner's memory needs of a session log."""

    def __init__(self, inner: MemoryLog, scope: OwnerScope) -> None:
        self._inner = inner
        self._scope = scope

    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Add events to the logs of their sessions, all or none."""
        # What is no event is refused by the store.
        scoped: list[Any] = [
            self._scope.event(f"events[{at}]", one) if isinstance(one, Event) else one
            for at, one in enumerate(check_list("events", events))
        ]
        stored = await self._inner.append(scoped, embeddings=embeddings)
        return [self._scope.own_event(one) for one in stored]

    async def append_checked(self, entry: LogEntry) -> Event:
        """Add an event that its caller has checked."""
        scope = self._scope
        owned = dataclasses.replace(
            entry, agent=str(scope.agent(entry.agent)), session=owned_id(scope.owner, entry.session)
        )
        return scope.own_event(await self._inner.append_checked(owned))

    async def recent(
        self,
        agent_id: AgentId,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
    ) -> list[Event]:
        """The newest events of an agent, ascending."""
        found = await self._inner.recent(
            self._scope.agent(agent_id), session_id=self._read(session_id), limit=limit, types=types
        )
        return [self._scope.own_event(one) for one in found]

    async def between(
        self,
        agent_id: AgentId,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = None,
        types: list[str] | None = None,
        limit: int = 1000,
        after: Event | None = None,
    ) -> list[Event]:
        """What an agent did from ``start`` until before ``end``, in pages."""
        found = await self._inner.between(
            self._scope.agent(agent_id),
            start,
            end,
            session_id=self._read(session_id),
            types=types,
            limit=limit,
            after=self._scope.event("after", after) if isinstance(after, Event) else after,
        )
        return [self._scope.own_event(one) for one in found]

    async def recall(
        self,
        agent_id: AgentId,
        query: str | list[float],
        *,
        limit: int = 5,
        session_id: str | None = None,
        types: list[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Recalled]:
        """The events nearest to a question."""
        found = await self._inner.recall(
            self._scope.agent(agent_id),
            query,
            limit=limit,
            session_id=self._read(session_id),
            types=types,
            since=since,
            until=until,
        )
        own, text = self._scope.own_event, self._scope.own_text
        return [
            dataclasses.replace(hit, event=own(hit.event), degraded=text(hit.degraded))
            for hit in found
        ]

    def _read(self, session_id: str | None) -> str | None:
        return None if session_id is None else self._scope.recalled_session(session_id)


@names_own_ids
class OwnedEpisodes(OwnedLog, EpisodicMemory):
    """The session log of one owner."""

    def __init__(self, inner: EpisodicMemory, scope: OwnerScope) -> None:
        super().__init__(inner, scope)
        self._episodes = inner

    async def start_session(
        self,
        agent_id: AgentId,
        session_id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        """Begin a session, or continue one that is there."""
        name = new_id() if session_id is None else session_id
        session = self._scope.session("session_id", name)
        return self._scope.own_session(
            await self._episodes.start_session(
                self._scope.agent(agent_id), session, metadata=metadata
            )
        )

    async def end_session(self, session_id: str) -> Session:
        """Mark a session as ended; its log stays."""
        session = self._scope.session("session_id", session_id)
        return self._scope.own_session(await self._episodes.end_session(session))

    async def get_session(self, session_id: str) -> Session | None:
        """A session, or ``None``."""
        found = await self._episodes.get_session(self._scope.session("session_id", session_id))
        return None if found is None else self._scope.own_session(found)

    async def list_sessions(
        self, agent_id: AgentId, *, limit: int = 50, after: Session | None = None
    ) -> list[Session]:
        """The sessions that an agent started, newest first."""
        if isinstance(after, Session):
            after = dataclasses.replace(after, id=self._scope.session("after.id", after.id))
        found = await self._episodes.list_sessions(
            self._scope.agent(agent_id), limit=limit, after=after
        )
        # Shared memory is stored under the agent's own name: others' sessions stay theirs.
        prefix = owned_id(self._scope.owner, "")
        return [self._scope.own_session(one) for one in found if one.id.startswith(prefix)]

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: AgentId | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Remove events of a session's log, narrowed by what is given."""
        return await self._episodes.clear(
            self._scope.session("session_id", session_id),
            agent_id=None if agent_id is None else self._scope.agent(agent_id),
            run_id=run_id,
            types=types,
        )


@names_own_ids
class OwnedShortTerm(ShortTerm):
    """The working states of one owner."""

    def __init__(self, inner: ShortTerm, scope: OwnerScope) -> None:
        self._inner = inner
        self._scope = scope

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``."""
        return await self._inner.get_state(self._session(session_id), keys=keys)

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state."""
        await self._inner.set_state(
            self._session(session_id),
            state,
            expected_version=expected_version,
            ttl_seconds=ttl_seconds,
        )

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Merge ``patch`` into the state."""
        await self._inner.update_state(
            self._session(session_id),
            patch,
            delete_keys=delete_keys,
            expected_version=expected_version,
            ttl_seconds=ttl_seconds,
        )

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session."""
        await self._inner.clear(self._session(session_id))

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        found = await self._inner.snapshot(self._session(session_id), keys=keys)
        return self._scope.own_state(found)

    def _session(self, session_id: str) -> str:
        return self._scope.session("session_id", session_id)


@names_own_ids
class OwnedLongTerm(LongTermMemory):
    """The facts of one owner."""

    def __init__(self, inner: LongTermMemory, scope: OwnerScope) -> None:
        self._inner = inner
        self._scope = scope

    async def save(self, agent_id: AgentId, content: str, **more: Any) -> str:
        """Keep a fact, and return its id."""
        return await self._inner.save(self._scope.agent(agent_id), content, **more)

    async def search(self, agent_id: AgentId, query: str, **more: Any) -> list[Memory]:
        """The memories that answer a query, the best first."""
        return await self._inner.search(self._scope.agent(agent_id), query, **more)

    async def get(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """One memory, or ``None``."""
        return await self._inner.get(self._scope.agent(agent_id), memory_id, namespace=namespace)

    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        """Forget one memory; whether it was there."""
        return await self._inner.delete(self._scope.agent(agent_id), memory_id, namespace=namespace)

    async def clear(self, agent_id: AgentId, *, namespace: str = "default") -> None:
        """Forget all memories of an agent in a namespace."""
        await self._inner.clear(self._scope.agent(agent_id), namespace=namespace)


@names_own_ids
class OwnedWake(SessionWake):
    """How the sessions of one owner are found."""

    def __init__(self, inner: SessionWake, scope: OwnerScope) -> None:
        self._inner = inner
        self._scope = scope
        self.brings_events = inner.brings_events

    async def wake(self, session_id: str) -> Wake:
        """How a session is found now."""
        return self._own(await self._inner.wake(self._scope.session("session_id", session_id)))

    async def wake_all(self, agent_id: AgentId) -> Wake | None:
        """How the sessions that an agent started for this owner are found."""
        found = await self._inner.wake_all(self._scope.agent(agent_id))
        if found is None:
            return None
        # Of a shared memory the sessions of others are not this owner's to know.
        prefix = owned_id(self._scope.owner, "")
        gaps = tuple(gap for gap in found.gaps if gap.session_id.startswith(prefix))
        status = found.status
        if status is WakeStatus.GAP and not gaps:
            status = WakeStatus.WARM
        return self._own(dataclasses.replace(found, gaps=gaps, status=status))

    def _own(self, found: Wake) -> Wake:
        scope = self._scope
        return dataclasses.replace(
            found,
            events=[scope.own_event(one) for one in found.events],
            gaps=tuple(
                dataclasses.replace(gap, session_id=scope.own(gap.session_id)) for gap in found.gaps
            ),
            state=None if found.state is None else scope.own_state(found.state),
            degraded=scope.own_text(found.degraded),
        )
