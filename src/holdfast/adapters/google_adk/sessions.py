"""A session service of Google ADK on ``state.episodes`` and ``state.short_term``.

A session is a state, in which one key holds what the service needs, and a log of its events. A
session that is created again under the same id has another log. The states of a user and of an app
are states too. An event and its changes to all three states are written in one transaction where
one store has both, and in steps elsewhere: see ``two_stores``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session

from holdfast.adapters.google_adk.events import event_of
from holdfast.adapters.google_adk.records import (
    EVENT,
    Head,
    Marker,
    SessionName,
    agent_of,
    deltas_of,
    digest_of,
    dumped,
    head_of,
    is_row,
    patches_of,
    plain,
    row_of,
    session_of,
)
from holdfast.adapters.google_adk.two_stores import TwoStores
from holdfast.blocking import Portal
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.short_term import MAX_STATES, ShortTerm
from holdfast.values.errors import InvalidInputError, NotSupportedError, VersionConflictError
from holdfast.values.events import Event as LogEvent
from holdfast.values.events import Session as Log
from holdfast.values.identity import ALL_AGENTS
from holdfast.values.ids import new_id
from holdfast.values.states import StateSnapshot
from holdfast.wiring.state import State

_PAGE = 1_000
_REPAIRS = 100
"""How often a read finishes what others left before it gives up."""

_REMEMBERED = 10_000
"""For how many session objects a service remembers the version."""


class HoldfastSessionService(BaseSessionService):
    """Stores sessions, for ``Runner(session_service=...)``; any event loop may use it.

    ``state`` determines the engine, the tenant and the owner. In memory and on Postgres an event
    and its changes to the states are written in one step. With ``redis=`` they are in different
    stores: a write that a process left half done is finished by the next call that reads or writes
    the session, and until then ``list_sessions`` and other sessions may see a part of it. ::

        sessions = HoldfastSessionService(state)
        runner = Runner(app_name="tides", agent=agent, session_service=sessions)
    """

    def __init__(self, state: State | Portal) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        # The version of the state of a session, for the markers that were read last.
        self._versions: OrderedDict[Marker, int] = OrderedDict()
        self._locks: WeakValueDictionary[SessionName, asyncio.Lock] = WeakValueDictionary()
        self._is_one_store = True
        self._lists_states = True

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session. Raises ``AlreadyExistsError`` if there is one with this id."""
        given = (session_id or "").strip() or platform_uuid.new_uuid()
        name = SessionName(app_name, user_id, given)
        return await self._portal.arun(self._create(name, state or {}))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events, or ``None``."""
        name = SessionName(app_name, user_id, (session_id or "").strip())
        read = self._get(name, config or GetSessionConfig())
        return await self._portal.arun(read, settle=False)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of an app, or of one of its users; the last updated one is last."""
        found = await self._portal.arun(self._list(app_name, user_id))
        found.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=found)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session and its events; the states of the user and the app stay."""
        name = SessionName(app_name, user_id, (session_id or "").strip())
        await self._portal.arun(self._delete(name))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user, without the prefix ``user:``."""
        return await self._portal.arun(self._user_state(SessionName(app_name, user_id, "")))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event and its changes to the states, all or nothing.

        Raises ``StaleSessionError`` if another caller wrote to the session since it was read. An
        event that is stored already, with the same id and content, is not stored again.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await self._portal.arun(self._append_in_turn(session, event))
        return event

    # A state's stores are read on its own loop, so all of these run there.

    @property
    def _episodes(self) -> EpisodicMemory:
        return self._portal.state.episodes

    @property
    def _states(self) -> ShortTerm:
        return self._portal.state.short_term

    @property
    def _two_stores(self) -> TwoStores:
        return TwoStores(self._episodes, self._states)

    async def _create(self, name: SessionName, state: dict[str, Any]) -> Session:
        own, user, app = await self._states.get_many(name.states)
        if own.version:
            raise _exists(name)
        deltas = deltas_of(state)
        head = Head(new_id(), 0, platform_time.get_time(), "")
        about = {"app_name": name.app, "user_id": name.user, "session_id": name.session}
        states = {"states": name.states}
        digests = {"app": digest_of("app", name.app), "session": name.digest}
        # If the process dies after this, there is a log that no session has: see _list and _delete.
        await self._episodes.start_session(
            name.agent, head.log, metadata={**about, **digests, **states}
        )
        try:
            _, version = await self._store(name, None, deltas, head, 0)
        except (InvalidInputError, NotSupportedError, VersionConflictError) as error:
            await self._episodes.delete_session(head.log)
            raise (_exists(name) if isinstance(error, VersionConflictError) else error) from None
        scopes = ({**user.state, **deltas["user"]}, {**app.state, **deltas["app"]})
        made = session_of(name, head, deltas["session"], *scopes)
        self._remember(head, version or 0).put_on(made)
        return made

    async def _get(self, name: SessionName, config: GetSessionConfig) -> Session | None:
        for _ in range(_REPAIRS):
            own, user, app = await self._states.get_many(name.states)
            if not own.version:
                return None
            head = head_of(own)
            found: list[LogEvent] = []
            if config.num_recent_events != 0:
                found = await self._episodes.recent(
                    name.agent, session_id=head.log, limit=config.num_recent_events, types=[EVENT]
                )
            rows = [one for one in found if is_row(one)]
            if not await self._two_stores.repair(name, own, rows):
                break
        else:
            raise _stale(name)
        made = session_of(name, head, own.state, user.state, app.state)
        self._remember(head, own.version).put_on(made)
        # Leave out events that were appended between the two reads: they are of a later version.
        events = [event_of(one.payload) for one in rows if one.seq <= head.seq]
        after = config.after_timestamp
        made.events = [one for one in events if after is None or one.timestamp >= after]
        return made

    async def _list(self, app: str, user: str | None) -> list[Session]:
        names: dict[str, SessionName] = {}
        states: dict[str, StateSnapshot] = {}
        cursor = None
        while True:
            page, with_them = await self._page(app, user, cursor)
            for one in page:
                whose, given = (one.metadata.get(key) for key in ("user_id", "session_id"))
                if not isinstance(whose, str) or not isinstance(given, str):
                    continue  # not a log of this service
                name = names[one.id] = SessionName(app, whose, given)
                if with_them is not None and one.metadata.get("states") == name.states:
                    states |= {key: with_them.get(key, StateSnapshot({})) for key in name.states}
            if len(page) < _PAGE:
                break
            cursor = page[-1].cursor
        # What was not read with the sessions: those of another store, and of earlier versions.
        left = {key for name in names.values() for key in name.states} - states.keys()
        states |= await self._read(left)
        found = []
        for log_id, name in names.items():
            own, of_user, of_app = (states[key] for key in name.states)
            if own.version and head_of(own).log == log_id:
                head = head_of(own)
                found.append(session_of(name, head, own.state, of_user.state, of_app.state))
                self._remember(head, own.version).put_on(found[-1])
        return found

    async def _page(
        self, app: str, user: str | None, cursor: str | None
    ) -> tuple[list[Log], dict[str, StateSnapshot] | None]:
        agent = ALL_AGENTS if user is None else agent_of(app, user)
        where = {"app": digest_of("app", app)}
        if self._lists_states:
            try:
                return await self._episodes.list_sessions_with_states(
                    agent, where=where, limit=_PAGE, cursor=cursor
                )
            except NotSupportedError:
                self._lists_states = False
        page = await self._episodes.list_sessions(agent, where=where, limit=_PAGE, cursor=cursor)
        return page, None

    async def _read(self, keys: Iterable[str]) -> dict[str, StateSnapshot]:
        wanted, found = list(keys), dict[str, StateSnapshot]()
        for at in range(0, len(wanted), MAX_STATES):
            some = wanted[at : at + MAX_STATES]
            found |= zip(some, await self._states.get_many(some), strict=True)
        return found

    async def _delete(self, name: SessionName) -> None:
        [own] = await self._states.get_many(name.states[:1])
        # First the state: nobody can append any more. If the process dies then, the events are
        # still there, and deleting the session again deletes them.
        await self._states.clear(name.states[0])
        if own.version:
            await self._episodes.delete_session(head_of(own).log)
            return
        for log in await self._episodes.list_sessions(
            name.agent, where={"session": name.digest}, limit=_PAGE
        ):
            # The log stays: somebody may be creating the session that it belongs to.
            await self._episodes.clear(log.id)

    async def _user_state(self, name: SessionName) -> dict[str, Any]:
        return plain(await self._states.get_state(name.states[1]))

    async def _append_in_turn(self, session: Session, event: Event) -> None:
        """Append an event after the calls before it: branches share a session object."""
        name = SessionName(session.app_name, session.user_id, session.id)
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            marker, is_new = await self._append(name, session, event)
            marker.put_on(session)
            if is_new:
                session.last_update_time = event.timestamp
                self._commit_event_to_session(session, event)

    async def _append(
        self, name: SessionName, session: Session, event: Event
    ) -> tuple[Marker, bool]:
        marker = Marker.of(session)
        version = None if marker is None else self._versions.get(marker)
        if marker is None or version is None:
            marker, version = await self._current(name, session, marker, event)
        deltas = deltas_of(event.actions.state_delta)
        head = Head(marker.log, marker.seq + 1, event.timestamp, event.id)
        try:
            seq, written = await self._store(name, dumped(event), deltas, head, version)
        except VersionConflictError as error:
            raise (_stale(name) if error.actual else _missing(name)) from None
        if seq <= marker.seq:
            return marker, False
        if written is None:
            # A retry of ours: the states have the versions of the first attempt.
            return Marker(marker.log, head.seq), True
        return self._remember(head, written), True

    async def _store(
        self,
        name: SessionName,
        event: dict[str, Any] | None,
        deltas: dict[str, dict[str, Any]],
        head: Head,
        version: int,
    ) -> tuple[int, int | None]:
        """Store a write to a session. Returns what ``TwoStores.write`` returns."""
        if self._is_one_store:
            rows = [] if event is None else [row_of(name, head.log, event)]
            patches = patches_of(name, deltas, head, version)
            try:
                done = await self._episodes.append(rows, patches=patches)
            except NotSupportedError:
                self._is_one_store = False
            else:
                return done[0].seq if done else 0, done.versions[0] if done.versions else None
        return await self._two_stores.write(name, event, deltas, head, version)

    async def _current(
        self, name: SessionName, session: Session, marker: Marker | None, event: Event
    ) -> tuple[Marker, int]:
        """Return marker and version; raises if the session changed since ``session`` was read."""
        [own] = await self._states.get_many(name.states[:1])
        if not own.version:
            raise _missing(name)
        head, version = head_of(own), own.version
        if head.pending is not None:
            _, left = await self._two_stores.finish(name, head, version)
            if left is None:
                raise _stale(name)
            version = left
        if marker is not None:
            same = (head.log, head.seq) == (marker.log, marker.seq)
        else:
            last = session.events[-1].id if session.events else ""
            same = head.updated <= session.last_update_time or last == head.event
        if same:
            return Marker(head.log, head.seq), version
        if head.event != event.id:
            raise _stale(name)
        # The event was stored, and the answer was lost.
        return Marker(head.log, head.seq - 1), version

    def _remember(self, head: Head, version: int) -> Marker:
        marker = Marker(head.log, head.seq)
        if head.pending is not None:
            return marker  # the next write has to read the head, and to finish this one first
        self._versions[marker] = version
        self._versions.move_to_end(marker)
        if len(self._versions) > _REMEMBERED:
            self._versions.popitem(last=False)
        return marker


def _exists(name: SessionName) -> AlreadyExistsError:
    return AlreadyExistsError(f"Session with id {name.session} already exists.")


def _missing(name: SessionName) -> SessionNotFoundError:
    return SessionNotFoundError(f"Session {name.session} not found.")


def _stale(name: SessionName) -> StaleSessionError:
    return StaleSessionError(
        f"The session {name.session} has been modified in storage since it was loaded. "
        "Please reload the session before appending more events."
    )
