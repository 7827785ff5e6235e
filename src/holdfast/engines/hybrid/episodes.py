"""Session logs at the speed of the hot log; the durable log is authoritative."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.engines.hybrid.log import HybridLog
from holdfast.spi.episodes import (
    EpisodeStorage,
    EventScope,
    NamedStates,
    NearestEvents,
    RecallQuestion,
    SessionScope,
    no_patches,
    no_states,
)
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.id_page import IdPage
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import TimedOutError
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.states import ExpectedWrite, StateSnapshot


class HybridEpisodes(EpisodeStorage):
    """Session logs over Redis and Postgres; ``durable`` is the storage of the Postgres engine.

    Searches read the durable log only. The agents' newest events are flushed to it first. ::

        episodes = HybridEpisodes(log, PostgresEpisodes(engine))
    """

    def __init__(self, log: HybridLog, durable: EpisodeStorage) -> None:
        self._log = log
        self._durable = durable

    async def append(
        self,
        entries: Sequence[LogEntry],
        vectors: Sequence[list[float]] | None,
        patches: Sequence[ExpectedWrite] = (),
    ) -> list[PositionedEntry]:
        """Append entries, all or none."""
        if patches:
            raise no_patches("hybrid")
        if vectors is None:
            return await self._log.append(entries)
        await self._log.durable.check_dimension(len(vectors[0]))
        # A vector can only be stored for an event that is in the durable log.
        stored = await self._log.append(entries, commit=True)
        await self._log.durable.keep_vectors(entries, vectors)
        return stored

    async def recent(self, scope: EventScope, limit: int | None, after_seq: int = 0) -> list[Event]:
        """Return the newest events of a scope, ascending."""
        if scope.session is None or limit is None:
            late = [one for one in await self._late(scope) if one.seq > after_seq]
        else:
            enough, late = await self._log.newest(
                scope.session, limit, lambda one: one.seq > after_seq and scope.has(one.entry)
            )
            if enough:
                return [one.to_event() for one in late]
        stored = await self._durable.recent(scope, limit, after_seq)
        merged = _merged(stored, late, in_session=scope.session is not None)
        return merged if limit is None else merged[max(len(merged) - limit, 0) :]

    async def get(self, session: str, ids: list[str]) -> list[Event]:
        """Return events by their ids."""
        window = await self._log.window(session)
        found = {one.entry.id: one for one in reversed(window.entries) if one.entry.id in ids}
        stored = [one for one in ids if one not in found]
        events = await self._durable.get(session, stored) if stored else []
        return [*events, *(one.to_event() for one in found.values())]

    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events of a scope after the event ``after``, ascending."""
        in_session = scope.session is not None
        late = await self._late(scope)
        stored = await self._durable.between(scope, after, limit)
        merged = _merged(stored, late, in_session=in_session)
        if after is not None:
            position = _order(after, in_session=in_session)
            merged = [one for one in merged if _order(one, in_session=in_session) > position]
        return merged[:limit]

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the events that match the question best, by words and by meaning."""
        # Word ranks depend on all events of the agent, so the durable log computes them.
        degraded = await self._flush(scope)
        return _degraded(await self._durable.search(scope, question), degraded)

    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events whose vectors are closest to this vector."""
        degraded = await self._flush(scope)
        dimension, found = await self._durable.nearest(scope, vector, limit)
        return NearestEvents(dimension, _degraded(found, degraded))

    async def start_session(
        self, session: str, agent: str, metadata: str | None, subject: str | None = None
    ) -> Session:
        """Create or reopen a session."""
        return await self._durable.start_session(session, agent, metadata, subject)

    async def end_session(self, session: str) -> Session | None:
        """End a session and return it; ``None`` if it does not exist."""
        return await self._durable.end_session(session)

    async def get_session(self, session: str) -> Session | None:
        """Return a session."""
        return await self._durable.get_session(session)

    async def list_sessions(
        self, scope: SessionScope, limit: int, after: Session | None
    ) -> list[Session]:
        """Return sessions, newest first."""
        if scope.by_activity and (late := await self._log.tail(None)):
            # The newest event of a session may be of any agent.
            await self._log.commit(late)
        return await self._durable.list_sessions(scope, limit, after)

    async def list_sessions_with_states(
        self,
        scope: SessionScope,  # noqa: ARG002 - not here
        limit: int,  # noqa: ARG002
        after: Session | None,  # noqa: ARG002
        named: NamedStates,  # noqa: ARG002
    ) -> tuple[list[Session], dict[str, StateSnapshot]]:
        """Refuse: the newest states are in Redis."""
        raise no_states("hybrid")

    async def agents(self, page: IdPage) -> list[str]:
        """Return a page of the agents that have events."""
        late = {one.entry.agent for one in await self._log.tail(None)}
        return page.of({*late, *await self._durable.agents(page)})

    async def fork(self, session: str, at: int | None, into: str) -> Session:
        """Copy the log of a session up to ``at`` into a new session."""
        return await self._log.edits.when_durable(
            session, lambda: self._durable.fork(session, at, into)
        )

    async def delete_session(self, session: str) -> bool:
        """Delete a session with its log. Returns whether it existed."""
        return await self._log.edits.delete_session(session)

    async def delete_events(self, session: str, ids: list[str]) -> int:
        """Delete events by their ids. Returns how many existed."""
        return await self._log.edits.delete_events(session, ids)

    async def clear(
        self, session: str, agent: str | None, run: str | None, types: list[str] | None
    ) -> int:
        """Delete the matching events of a session. Returns how many."""
        return await self._log.clear(session, agent=agent, run=run, types=types)

    async def _late(self, scope: EventScope) -> list[PositionedEntry]:
        """Return the events of a scope that are not durable yet."""
        if scope.session is None:
            late: Iterable[PositionedEntry] = await self._log.tail(scope.agent)
        else:
            window = await self._log.window(scope.session)
            late = (one for one in window.entries if one.entry.id in window.unflushed)
        return [one for one in late if scope.has(one.entry)]

    async def _flush(self, scope: EventScope) -> str:
        """Flush the events of a scope's agents. Returns ``""``, or why some are not durable."""
        tail = await self._log.tail(scope.agent)
        if late := [one for one in tail if scope.has_agent(one.entry.agent)]:
            try:
                await self._log.commit(late)
            except TimedOutError as error:
                return f"the newest {len(late)} events are left out: {error}"
        return ""


def _degraded(found: list[Recalled], degraded: str) -> list[Recalled]:
    if not degraded:
        return found
    return [
        dataclasses.replace(one, degraded="; ".join(filter(None, (one.degraded, degraded))))
        for one in found
    ]


def _merged(
    stored: Iterable[Event], late: Iterable[PositionedEntry], *, in_session: bool
) -> list[Event]:
    """Return each event once, in order; the stored version wins."""
    found = {(one.session_id, one.id): one for one in stored}
    for one in late:
        found.setdefault((one.entry.session, one.entry.id), one.to_event())
    return sorted(found.values(), key=lambda event: _order(event, in_session=in_session))


def _order(event: Event, *, in_session: bool) -> tuple[Any, ...]:
    position = (event.epoch, event.seq)
    return position if in_session else (event.occurred_at, event.session_id, *position)
