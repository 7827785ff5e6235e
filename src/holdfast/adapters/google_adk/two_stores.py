"""Writes to a session of ADK whose events and states are in different stores, as with Redis.

The event and all its changes are first written into the state of the session, as ``Head.pending``,
with the changes to that state: that one write decides, and is refused if the session is another
version. The event is then appended to the log, the states of the user and the app are patched, and
``pending`` is removed. Each of these steps may be repeated. If a process dies between them, the
next call that reads or writes the session does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from google.adk.errors.session_not_found_error import SessionNotFoundError

from holdfast.adapters.google_adk.records import (
    EVENT,
    OWN_KEY,
    Head,
    Pending,
    SessionName,
    applied,
    deltas_of,
    head_of,
    is_row,
    row_of,
    was_applied,
)
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.short_term import ShortTerm
from holdfast.values.errors import VersionConflictError
from holdfast.values.events import Event as LogEvent
from holdfast.values.states import StateSnapshot


class TwoStores:
    """Writes to sessions in steps, and finishes the writes of processes that died.

    ::

        seq, version = await TwoStores(episodes, states).write(name, event, deltas, head, 7)
    """

    def __init__(self, episodes: EpisodicMemory, states: ShortTerm) -> None:
        self._episodes = episodes
        self._states = states

    async def write(
        self,
        name: SessionName,
        event: dict[str, Any] | None,
        deltas: dict[str, dict[str, Any]],
        head: Head,
        version: int,
    ) -> tuple[int, int | None]:
        """Write to a session of this version; without ``event``, create it.

        Returns the position of the event, and the new version of the session's state; ``None`` if
        the event was stored before, or another caller has written since.
        """
        row = None if event is None else row_of(name, head.log, event)
        if row is not None and await self._episodes.get(head.log, [row.id]):
            return await self._log(row), None
        begun = replace(head, pending=Pending(event, deltas["user"], deltas["app"]))
        patch = {**deltas["session"], OWN_KEY: begun.to_json()}
        try:
            version = await self._states.update_state(
                name.states[0], patch, expected_version=version
            )
        except VersionConflictError:
            [own] = await self._states.get_many(name.states[:1])
            if row is None or not own.version or head_of(own).event != head.event:
                raise
            # An attempt before this one got so far, and its answer was lost.
            await self.finish(name, head_of(own), own.version)
            return await self._log(row), None
        return await self.finish(name, begun, version)

    async def finish(self, name: SessionName, head: Head, version: int) -> tuple[int, int | None]:
        """Do what is left of the last write to a session, and return what ``write`` returns."""
        pending = head.pending
        if pending is None:
            return head.seq, version
        left: int | None
        row = None if pending.event is None else row_of(name, head.log, pending.event)
        seq = 0 if row is None else await self._log(row)
        for state, delta in zip(name.states[1:], (pending.user, pending.app), strict=True):
            if delta:
                await self._apply(state, delta, head)
        done = replace(head, pending=None)
        if seq > head.seq:
            # The log has events that this state does not have: it went back. See repair.
            done = replace(done, seq=head.seq - 1)
        try:
            left = await self._states.update_state(
                name.states[0], {OWN_KEY: done.to_json()}, expected_version=version
            )
        except VersionConflictError:
            [own] = await self._states.get_many(name.states[:1])
            if not own.version or head_of(own).log != head.log:
                # The session was deleted meanwhile, perhaps before the event was appended.
                if row is not None:
                    await self._episodes.delete_events(head.log, [row.id])
                raise SessionNotFoundError(f"Session {name.session} not found.") from None
            # Somebody else finished it.
            left = own.version if head_of(own) == done else None
        return seq, left if done.seq == head.seq else None

    async def repair(self, name: SessionName, own: StateSnapshot, rows: Sequence[LogEvent]) -> bool:
        """Finish what is left of earlier writes. Returns whether a read has to be repeated.

        ``rows`` are the newest events of the log, read after the state. If they are newer than the
        state, somebody wrote in between; or the store of the states lost its newest data, and the
        changes are made again from the events.
        """
        head = head_of(own)
        if own.degraded:
            return False
        if head.pending is not None:
            await self.finish(name, head, own.version)
            return True
        if not rows or rows[-1].seq <= head.seq:
            return False
        [now] = await self._states.get_many(name.states[:1])
        if now.degraded or now.version != own.version:
            return False
        after = await self._episodes.recent(
            name.agent, session_id=head.log, limit=None, types=[EVENT], after_seq=head.seq
        )
        version: int | None = own.version
        for one in filter(is_row, after):
            event = one.payload["event"]
            deltas = deltas_of(event["actions"].get("state_delta", {}))
            pending = Pending(event, deltas["user"], deltas["app"])
            head = Head(head.log, one.seq, event["timestamp"], event["id"], pending)
            patch = {**deltas["session"], OWN_KEY: head.to_json()}
            try:
                version = await self._states.update_state(
                    name.states[0], patch, expected_version=version
                )
            except VersionConflictError:
                break  # somebody else does the same
            _, version = await self.finish(name, head, version)
            if version is None:
                break
        return True

    async def _log(self, row: LogEvent) -> int:
        [stored] = await self._episodes.append([row])
        return stored.seq

    async def _apply(self, state: str, delta: dict[str, Any], head: Head) -> None:
        """Patch the state of a user or an app, once for each write to a session."""
        while True:
            [found] = await self._states.get_many([state])
            if was_applied(found.state, head):
                return
            patch = {**delta, **applied(found.state, head)}
            try:
                await self._states.update_state(state, patch, expected_version=found.version)
            except VersionConflictError:
                continue  # another session wrote: patch what there is now
            return
