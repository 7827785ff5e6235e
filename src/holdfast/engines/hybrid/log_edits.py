"""Changes to a session's log in the durable log alone, while the hot log does not have it.

A change that reads before it writes needs one place that orders it with all appends. So the session
is flushed and unloaded first, and the durable log changes it in one transaction. Writers wait for
the lock of the session, and the next append loads the session again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker, HotStoreDownError
from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.engines.hybrid.grants import Grants
from holdfast.engines.hybrid.write_back import WriteBack
from holdfast.spi.hybrid.durable_log import DurableLog
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.hybrid.hot_log import HotLog
from holdfast.spi.log_entry import LogEntry
from holdfast.spi.transcripts import Tail
from holdfast.values.errors import TimedOutError, UnavailableError
from holdfast.values.failpoints import hit

_log = logging.getLogger("holdfast.hybrid")
T = TypeVar("T")

LOCK_SECONDS = 30.0
"""How long the lock of a session is held at most."""

UNLOAD_SECONDS = 20.0
"""How long a change waits until the session is flushed and unloaded; less than the lock."""


class LogEdits:
    """Changes the logs of one tenant's sessions past the hot log.

    ::

        popped = await edits.pop("s1", "writer/ana")
    """

    def __init__(
        self,
        hot: HotLog,
        durable: DurableLog,
        consolidator: Consolidator,
        grants: Grants,
        back: WriteBack,
        *,
        tenant: str,
        breaker: CircuitBreaker,
    ) -> None:
        self._hot = hot
        self._durable = durable
        self._consolidator = consolidator
        self._grants = grants
        self._back = back
        self._tenant = tenant
        self._breaker = breaker

    async def append(self, entries: Sequence[LogEntry]) -> list[PositionedEntry]:
        """Append entries of sessions that are on several servers of the hot log, all or none.

        Raises ``HotStoreDownError`` if the hot log does not answer; a retry is safe. ::

            stored = await edits.append(entries)
        """
        async with AsyncExitStack() as stack:
            # In one order, so that two batches do not wait for each other.
            for session in sorted({one.session for one in entries}):
                await stack.enter_async_context(self._grants.held(session, seconds=LOCK_SECONDS))
                await self._unload(session)
            hit("append.after_unload")
            return await self._durable.append(entries)

    async def pop(self, session: str, agent: str) -> PositionedEntry | None:
        """Remove the newest message of an agent, and return it; ``None`` if there is none.

        ::

            popped = await edits.pop("s1", "writer/ana")
        """
        async with self._unloaded(session) as gone:
            popped = await self._durable.pop(session, agent)
            if popped is not None:
                gone[popped.entry.id] = popped.position
        return popped

    async def replace_tail(self, session: str, agent: str, tail: Tail) -> int:
        """Replace the newest messages of an agent. Returns the newest number.

        ::

            last = await edits.replace_tail("s1", "writer/ana", tail)
        """
        async with self._unloaded(session) as gone:
            last, removed = await self._durable.replace_tail(session, agent, tail)
            gone.update(removed)
        return last

    async def delete_session(self, session: str) -> bool:
        """Delete a session with its log. Returns whether there was one.

        ::

            await edits.delete_session("s1")
        """
        async with self._unloaded(session) as gone:
            removed = await self._durable.delete_session(session)
            gone.update(removed or {})
        mine = self._back.unflushed.of(session)
        self._back.unflushed.forget((session, one.entry.id) for one in mine)
        return removed is not None

    async def delete_events(self, session: str, ids: Sequence[str]) -> int:
        """Delete events by their ids. Returns how many were there.

        ::

            await edits.delete_events("s1", ["e1"])
        """
        async with self._unloaded(session) as gone:
            removed = await self._durable.delete_events(session, ids)
            gone.update(removed)
        return len(removed)

    async def when_durable(self, session: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in the durable log while all of a session is there, and only there.

        ::

            fork = await edits.when_durable("s1", lambda: durable.fork("s1", None, "s2"))
        """
        async with self._unloaded(session):
            return await work()

    @asynccontextmanager
    async def _unloaded(self, session: str) -> AsyncIterator[dict[str, tuple[int, int]]]:
        """Keep a session out of the hot log. Afterwards forget the ids that the block adds."""
        gone: dict[str, tuple[int, int]] = {}
        is_changed = False
        try:
            async with self._grants.held(session, seconds=LOCK_SECONDS):
                await self._unload(session)
                hit("edit.after_unload")
                yield gone
                is_changed = True
                hit("edit.after_durable")
                await self._forget(session, gone)
        except HotStoreDownError as error:
            if not is_changed:
                raise UnavailableError("redis", str(error)) from error
            # The change is committed. At worst an id of it counts as known for an hour.
            _log.warning("Redis did not get a change to session %s: %s", session, error)

    async def _unload(self, session: str) -> None:
        try:
            async with asyncio.timeout(UNLOAD_SECONDS):
                while True:
                    await self._back.recover(session)
                    window = await self._breaker.call(lambda: self._hot.window(session, last=1))
                    if window.known is None and not window.orphaned:
                        return
                    # Also what was cleared waits in the queue until it is flushed.
                    await self._back.drain(session)
                    await self._consolidator.unload(self._tenant, session, keep=False)
        except TimeoutError as error:
            if isinstance(error, TimedOutError):
                raise
            raise UnavailableError(
                "hybrid", f"session {session!r} has writes all the time: pause them, and try again"
            ) from error

    async def _forget(self, session: str, gone: Mapping[str, tuple[int, int]]) -> None:
        self._back.unflushed.forget((session, id_) for id_ in gone)
        if gone:
            await self._breaker.call(lambda: self._hot.forget(session, [], dict(gone)))
