"""A naive session log: one list, searched from end to end."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any

from holdfast.testing.models.recall import naive_recall
from holdfast.testing.models.shared import Shared
from holdfast.values.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
)
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.filters import matches, parse
from holdfast.values.identity import ALL_AGENTS, AgentId, AnyAgent


def _passes(where: dict[str, Any] | None, event: Event) -> bool:
    seen = {}
    for key, value in event.payload.items():
        long = isinstance(value, str) and len(value.encode()) > 256
        if not long and not isinstance(value, (dict, list)):
            seen[key] = value
    return matches(parse(where), seen)


class NaiveEpisodes:
    """The session log as a list of (tenant, event), and the sessions as a list beside it."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self._shared = shared
        self._tenant = tenant
        self._rows: list[tuple[str, Event]] = shared.table("events")
        self._sessions: list[tuple[str, Session]] = shared.table("sessions")
        self._used: list[tuple[str, str]] = shared.table("used positions")
        self._ever: list[tuple[str, str]] = shared.table("sessions that ever were")
        self._deleted: list[tuple[str, str, str]] = shared.table("whom deleted sessions were about")

    def _mine(self, fits: Callable[[Event], bool]) -> list[Event]:
        return [event for tenant, event in self._rows if tenant == self._tenant and fits(event)]

    async def append(self, events: list[Event]) -> list[Event]:
        """Check all, then add one after the other."""
        known = {(one.session_id, one.id): one for one in self._mine(lambda _: True)}
        for event in events:
            first = known.setdefault((event.session_id, event.id), event)
            # The time is left out: a retry may have another, and the first one stays.
            if (first.agent_id, first.type, first.run_id, first.payload) != (
                *(event.agent_id, event.type, event.run_id, event.payload),
            ):
                raise ConflictError("event", event.id)
        positioned = []
        for event in events:
            same = [one for one in self._mine(lambda _: True) if one.id == event.id]
            stored = [one for one in same if one.session_id == event.session_id]
            if not stored:
                await self._open(event.agent_id, event.session_id)
                self._used.append((self._tenant, event.session_id))
                seq = self._used.count((self._tenant, event.session_id))
                stored = [dataclasses.replace(copy.deepcopy(event), epoch=1, seq=seq)]
                self._rows.append((self._tenant, stored[0]))
            positioned.append(stored[0])
        return copy.deepcopy(positioned)

    async def used(self, session_id: str) -> bool:
        """Whether anything was ever written to a session, cleared or not."""
        return (self._tenant, session_id) in self._used

    async def recent(
        self,
        agent_id: AnyAgent,
        *,
        session_id: str | None = None,
        limit: int | None = 20,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
        after_seq: int | None = None,
    ) -> list[Event]:
        """Sort everything, take the end."""
        found = self._sorted(agent_id, session_id, types, where)
        if after_seq is not None:
            if session_id is None:
                raise InvalidInputError("after_seq", "without a session")
            found = [one for one in found if one.seq > after_seq]
        return copy.deepcopy(found if limit is None else found[max(0, len(found) - limit) :])

    async def list_agents(self, *, limit: int = 100, after: AgentId | None = None) -> list[AgentId]:
        """Sort the names of all events."""
        names = sorted({str(one.agent_id) for one in self._mine(lambda _: True)})
        found = [one for one in names if after is None or one > str(after)]
        return [AgentId.parse(one) for one in found[:limit]]

    async def get(self, session_id: str, ids: list[str]) -> list[Event]:
        """Look at each event for each id."""
        every = self._mine(lambda one: one.session_id == session_id)
        found = [one for id_ in dict.fromkeys(ids) for one in every if one.id == id_]
        return copy.deepcopy(found)

    async def between(
        self,
        agent_id: AnyAgent,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = None,
        types: list[str] | None = None,
        limit: int = 1000,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        """Sort everything, keep the span."""
        found = self._sorted(agent_id, session_id, types, where)
        return copy.deepcopy([one for one in found if start <= one.occurred_at < end][:limit])

    def _sorted(
        self,
        agent_id: AnyAgent,
        session_id: str | None,
        types: list[str] | None,
        where: dict[str, Any] | None = None,
    ) -> list[Event]:
        found = self._mine(
            lambda one: (
                agent_id in (ALL_AGENTS, one.agent_id)
                and (session_id is None or one.session_id == session_id)
                and (types is None or one.type in types)
                and _passes(where, one)
            )
        )
        if session_id is not None:
            return sorted(found, key=lambda one: (one.epoch, one.seq))
        return sorted(found, key=lambda one: (one.occurred_at, one.session_id, one.epoch, one.seq))

    async def recall(
        self,
        agent_id: AnyAgent,
        query: str,
        *,
        limit: int = 5,
        session_id: str | None = None,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
    ) -> list[Recalled]:
        """Over the whole log of every agent that was asked."""
        log = self._sorted(agent_id, None, None)
        hits = naive_recall(
            log,
            query,
            limit,
            lambda one: (
                session_id in (None, one.session_id)
                and (types is None or one.type in types)
                and _passes(where, one)
            ),
        )
        return copy.deepcopy(hits)

    async def _open(self, agent_id: AgentId, session_id: str) -> None:
        if await self.get_session(session_id) is None:
            opened = Session(
                session_id, agent_id, self._shared.now, subject=self._was_about(session_id)
            )
            self._sessions.append((self._tenant, opened))
            self._ever.append((self._tenant, session_id))

    def _was_about(self, session_id: str) -> str:
        """Return whom the last deleted session with this id was about."""
        here = (self._tenant, session_id)
        return next((about for *where, about in self._deleted[::-1] if (*where,) == here), "")

    async def start_session(
        self,
        agent_id: AgentId,
        session_id: str,
        *,
        metadata: dict[str, Any] | None = None,
        subject: str | None = None,
    ) -> Session:
        """Open it, or write it anew without its end."""
        there = await self.get_session(session_id)
        about = self._was_about(session_id) or subject if there is None else there.subject
        if subject is not None and about != subject:
            raise ConflictError("session", session_id, "it is about somebody else")
        await self._open(agent_id, session_id)
        kept = await self.get_session(session_id)
        assert kept is not None
        data = kept.metadata if metadata is None else copy.deepcopy(metadata)
        about = kept.subject if subject is None else subject
        return self._write(dataclasses.replace(kept, ended_at=None, metadata=data, subject=about))

    async def end_session(self, session_id: str) -> Session:
        """Write it anew with its end."""
        kept = await self.get_session(session_id)
        if kept is None:
            raise NotFoundError("session", session_id)
        return self._write(dataclasses.replace(kept, ended_at=kept.ended_at or self._shared.now))

    def _write(self, session: Session) -> Session:
        for at, (tenant, one) in enumerate(self._sessions):
            if tenant == self._tenant and one.id == session.id:
                self._sessions[at] = (tenant, session)
        return copy.deepcopy(session)

    async def get_session(self, session_id: str) -> Session | None:
        """Look at each."""
        for tenant, session in self._sessions:
            if tenant == self._tenant and session.id == session_id:
                return copy.deepcopy(session)
        return None

    async def list_sessions(
        self,
        agent_id: AnyAgent,
        *,
        limit: int = 50,
        where: dict[str, Any] | None = None,
        by: str = "started_at",
    ) -> list[Session]:
        """Sort them all."""
        mine = [one for tenant, one in self._sessions if tenant == self._tenant]
        found = [
            one
            for one in mine
            if agent_id in (ALL_AGENTS, one.agent_id) and matches(parse(where), one.metadata)
        ]
        if by == "last_active_at":
            found = [dataclasses.replace(one, last_active_at=self._active(one)) for one in found]
        found.sort(key=lambda one: (getattr(one, by), one.id), reverse=True)
        return copy.deepcopy(found[:limit])

    def _active(self, session: Session) -> datetime:
        log = self._mine(lambda one: one.session_id == session.id)
        return max(log, key=lambda one: one.seq).occurred_at if log else session.started_at

    async def fork(self, session_id: str, into: str, *, at: int | None = None) -> Session:
        """Write everything anew under the other id."""
        source, there = await self.get_session(session_id), await self.get_session(into)
        if source is None:
            raise NotFoundError("session", session_id)
        used = self._used.count((self._tenant, session_id))
        if at is not None and at > used:
            raise InvalidInputError("at", "too large")
        if there is not None and there.parent == session_id and at in (None, there.parent_at):
            return there
        if there is not None or (self._tenant, into) in self._ever:
            raise ConflictError("session", into)
        last = used if at is None else at
        fork = dataclasses.replace(
            source,
            id=into,
            started_at=self._shared.now,
            ended_at=None,
            parent=session_id,
            parent_at=last,
        )
        self._sessions.append((self._tenant, fork))
        self._ever.append((self._tenant, into))
        self._used.extend([(self._tenant, into)] * last)
        for event in self._mine(lambda one: one.session_id == session_id and one.seq <= last):
            self._rows.append((self._tenant, dataclasses.replace(event, session_id=into)))
        return copy.deepcopy(fork)

    async def delete_session(self, session_id: str) -> bool:
        """Keep all other rows; used positions stay used."""
        there = await self.get_session(session_id)
        if there is not None:
            self._deleted.append((self._tenant, session_id, there.subject))
        await self.clear(session_id)
        self._sessions[:] = [
            row for row in self._sessions if (row[0], row[1].id) != (self._tenant, session_id)
        ]
        return there is not None

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: AgentId | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Keep what does not match."""
        gone = self._mine(
            lambda one: (
                one.session_id == session_id
                and agent_id in (None, one.agent_id)
                and run_id in (None, one.run_id)
                and (types is None or one.type in types)
            )
        )
        self._rows[:] = [row for row in self._rows if row[1] not in gone or row[0] != self._tenant]
        return len(gone)

    async def delete_events(self, session_id: str, ids: list[str]) -> int:
        """Keep what does not have one of these ids."""
        gone = self._mine(lambda one: one.session_id == session_id and one.id in ids)
        self.drop(session_id, ids)
        return len(gone)

    def drop(self, session_id: str, ids: list[str]) -> None:
        """Keep what does not have one of these ids."""
        gone = self._mine(lambda one: one.session_id == session_id and one.id in ids)
        self._rows[:] = [row for row in self._rows if row[1] not in gone or row[0] != self._tenant]

    def has(self, session_id: str, id: str) -> bool:
        """Whether an event of any agent has this id."""
        return bool(self._mine(lambda one: (one.session_id, one.id) == (session_id, id)))
