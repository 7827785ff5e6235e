"""The subjects of sessions, whose data keys encrypt the sessions; cached for a minute."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from holdfast.sealing.data_keys import KEPT_SECONDS
from holdfast.values.events import Session
from holdfast.values.owners import split_owned

Read: TypeAlias = Callable[[str], Awaitable[Session | None]]
"""Reads a session by its stored id."""

_MOST = 10_000


class SessionSubjects:
    """The subjects of a tenant's sessions. Without ``read``, each session is about its owner.

    ::

        subjects = SessionSubjects()
        subjects.read = episodes.get_session
        await subjects.of("s1")
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, str]] = {}
        self.read: Read | None = None

    async def of(self, session: str) -> str:
        """Return the subject of a session, or else its owner.

        ::

            subject = await subjects.of("s1")
        """
        if self.read is None:
            return split_owned(session)[0]
        kept = self._kept.get(session)
        if kept is None or kept[0] <= self._clock():
            found = await self.read(session)
            self.remember(session, "" if found is None else found.subject)
            kept = self._kept[session]
        return kept[1]

    def remember(self, session: str, subject: str) -> None:
        """Cache whom a session is about; empty for its owner.

        ::

            subjects.remember("s1", "ana")
        """
        if len(self._kept) >= _MOST:
            self._kept.clear()
        until = self._clock() + KEPT_SECONDS
        self._kept[session] = (until, subject or split_owned(session)[0])

    def forget(self, session: str | None = None) -> None:
        """Delete a session from the cache, or all of them.

        ::

            subjects.forget("s1")
        """
        if session is None:
            self._kept.clear()
        else:
            self._kept.pop(session, None)
