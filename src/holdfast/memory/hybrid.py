"""Episodic memory at the speed of the hot log, with the truth in the durable one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_ids,
    check_list,
    check_text,
    check_time,
    check_vector,
)
from holdfast.kernel.core.errors import InvalidInputError, TimedOutError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.agent_memory import EntryLog
from holdfast.kernel.storage.episodes import EpisodicMemory, Event, Recalled, Session
from holdfast.kernel.storage.hot_entry import PlacedEntry
from holdfast.kernel.storage.log_entry import LogEntry, check_embeddings
from holdfast.kernel.storage.wake import SessionWake, Wake, WakeStatus
from holdfast.memory.hybrid_log import HybridLog
from holdfast.memory.hybrid_states import HybridStates


class HybridEpisodes(EpisodicMemory, EntryLog, SessionWake):
    """``EpisodicMemory`` over a hot and a durable log; ``durable`` is that of the durable engine.

    A session that has only a working state, among the ``states``, is no new one. ::

        episodes = HybridEpisodes(log, durable_episodes, states=short_term)
    """

    brings_events = True

    def __init__(self, log: HybridLog, durable: EpisodicMemory, *, states: HybridStates) -> None:
        self._log = log
        self._durable = durable
        self._states = states

    async def append(
        self, events: list[Event], *, embeddings: list[list[float]] | None = None
    ) -> list[Event]:
        """Add events to the logs of their sessions, all or none; returns them with their place."""
        check_list("events", events)
        entries = [LogEntry.of_event(f"events[{at}]", event) for at, event in enumerate(events)]
        vectors = check_embeddings(embeddings, len(entries))
        if vectors:
            await self._log.durable.check_dimension(len(vectors[0]))
        # A vector belongs to a stored event.
        places = await self._log.append(entries, commit=bool(vectors))
        if vectors:
            await self._log.durable.keep_vectors(entries, vectors)
        return [entry.to_event(*places[entry.key]) for entry in entries]

    async def append_entry(self, entry: LogEntry) -> tuple[int, int]:
        """Append an entry that is checked already; its place."""
        return (await self._log.append((entry,)))[entry.key]

    async def recent(
        self,
        agent_id: AgentId,
        *,
        session_id: str | None = None,
        limit: int = 20,
        types: list[str] | None = None,
    ) -> list[Event]:
        """The newest events of an agent, ascending."""
        agent, wanted = str(AgentId.parse(agent_id)), _types(types)
        limit = check_count("limit", limit)
        chosen = _chosen(agent, wanted)
        if session_id is None:
            late = [one for one in await self._log.tail(agent) if chosen(one)]
        else:
            session = check_id("session_id", session_id)
            enough, late = await self._log.newest(session, limit, chosen)
            if enough:
                return [one.to_event() for one in late]
        stored = await self._durable.recent(
            agent_id, session_id=session_id, limit=limit, types=types
        )
        merged = _merged(stored, late, in_session=session_id is not None)
        return merged[len(merged) - limit :] if limit < len(merged) else merged

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
        agent, wanted = str(AgentId.parse(agent_id)), _types(types)
        since, until = check_time("start", start), check_time("end", end)
        limit = check_count("limit", limit)
        if after is not None and not isinstance(after, Event):
            raise InvalidInputError("after", "must be the last event of the page before")
        chosen, in_session = _chosen(agent, wanted), session_id is not None
        if session_id is None:
            late = await self._log.tail(agent)
        else:
            window = await self._log.window(check_id("session_id", session_id))
            late = [one for one in window.entries if one.entry.id in window.unflushed]
        stored = await self._durable.between(
            *(agent_id, start, end),
            session_id=session_id,
            types=types,
            limit=limit,
            after=after,
        )
        late = [one for one in late if chosen(one) and since <= one.entry.occurred_at < until]
        merged = _merged(stored, late, in_session=in_session)
        if after is not None:
            place = _order(after, in_session=in_session)
            merged = [one for one in merged if _order(one, in_session=in_session) > place]
        return merged[:limit]

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
        """The events nearest to a question; what the agent has just said is flushed first.

        Ranks of words depend on all that the agent ever said, so they are made where that is.
        """
        agent = str(AgentId.parse(agent_id))
        check_count("limit", limit)
        if session_id is not None:
            check_id("session_id", session_id)
        _types(types)
        for field, moment in (("since", since), ("until", until)):
            if moment is not None:
                check_time(field, moment)
        if isinstance(query, str):
            check_text("query", query)
        else:
            check_vector("query", query)
        degraded = ""
        if late := await self._log.tail(agent):
            try:
                await self._log.commit(late)
            except TimedOutError as error:
                degraded = f"the newest {len(late)} events are left out: {error}"
        found = await self._durable.recall(
            *(agent_id, query),
            limit=limit,
            session_id=session_id,
            types=types,
            since=since,
            until=until,
        )
        if not degraded:
            return found
        return [
            dataclasses.replace(one, degraded="; ".join(filter(None, (one.degraded, degraded))))
            for one in found
        ]

    async def start_session(
        self,
        agent_id: AgentId,
        session_id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        """Begin a session, or take up one that is there."""
        return await self._durable.start_session(agent_id, session_id, metadata=metadata)

    async def end_session(self, session_id: str) -> Session:
        """Mark a session as ended; its log stays."""
        return await self._durable.end_session(session_id)

    async def get_session(self, session_id: str) -> Session | None:
        """A session, or ``None``."""
        return await self._durable.get_session(session_id)

    async def list_sessions(
        self, agent_id: AgentId, *, limit: int = 50, after: Session | None = None
    ) -> list[Session]:
        """The sessions that an agent started, newest first, in pages."""
        return await self._durable.list_sessions(agent_id, limit=limit, after=after)

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: AgentId | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Remove events of a session's log, narrowed by what is given; returns how many."""
        return await self._log.clear(
            check_id("session_id", session_id),
            agent=None if agent_id is None else str(AgentId.parse(agent_id)),
            run=None if run_id is None else check_id("run_id", run_id),
            types=_types(types),
        )

    async def wake_all(self, agent_id: AgentId) -> Wake:
        """How the sessions that an agent started are found."""
        return await self._log.wake_all(str(AgentId.parse(agent_id)))

    async def wake(self, session_id: str) -> Wake:
        """The newest events of a session and its state, and whether anything of it is missing."""
        found = await self._log.wake(check_id("session_id", session_id))
        state = await self._states.complete(session_id, found.state)
        known = found.status is WakeStatus.NEW and state.version
        status = WakeStatus.WARM if known else found.status
        return dataclasses.replace(found, status=status, state=state)


def _types(types: list[str] | None) -> list[str] | None:
    return None if types is None else check_ids("types", types)


def _chosen(agent: str, types: list[str] | None) -> Callable[[PlacedEntry], bool]:
    return lambda one: one.entry.agent == agent and (types is None or one.entry.type in types)


def _merged(
    stored: Iterable[Event], late: Iterable[PlacedEntry], *, in_session: bool
) -> list[Event]:
    """Each event once, as it is stored if it is, in order."""
    found = {(one.session_id, one.id): one for one in stored}
    for one in late:
        found.setdefault((one.entry.session, one.entry.id), one.to_event())
    return sorted(found.values(), key=lambda event: _order(event, in_session=in_session))


def _order(event: Event, *, in_session: bool) -> tuple[Any, ...]:
    place = (event.epoch, event.seq)
    return place if in_session else (event.occurred_at, event.session_id, *place)
