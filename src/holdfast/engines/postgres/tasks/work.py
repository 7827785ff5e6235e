"""Finds the tenants that have work and wakes workers, on Postgres."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import suppress

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.listener import Listener
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.watched import LEAVE_SECONDS
from holdfast.spi.tasks.work import ScheduledWork, WorkKind, WorkStorage, WorkSurvey
from holdfast.values.errors import HoldfastError

_SQL, _SCHEDULES = load("ledger_work"), load("schedules")
_log = logging.getLogger("holdfast.postgres")
TOPIC = "work"
QUIET_SECONDS = 0.02
"""The pause after a notification. Rings during the pause are combined into the next one."""


def requests_topic(worker: str) -> str:
    """Return the topic on which a worker is notified of requests to its tasks."""
    return f"requests\n{worker}"


class Doorbell:
    """Notifies workers of new work and of requests after the commit, and combines notifications.

    A ``NOTIFY`` in the submitting transaction would make all submits wait for each other, since
    the database lets only one transaction with notifications commit at a time. ::

        engine.singleton(Doorbell).ring()
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine
        self._topics: set[str] = set()
        self._closing = asyncio.Event()
        self._ringing: asyncio.Task[None] | None = None

    def ring(self, topic: str = TOPIC) -> None:
        """Notify a topic soon. Calls during a notification are combined into one more."""
        self._topics.add(topic)
        if self._ringing is None or self._ringing.done():
            self._ringing = asyncio.create_task(self._ring())

    async def aclose(self) -> None:
        """Send the pending notifications, but do not wait long: workers also poll."""
        self._closing.set()
        if self._ringing is not None:
            await asyncio.wait({self._ringing}, timeout=LEAVE_SECONDS)
            self._ringing.cancel()
            await asyncio.gather(self._ringing, return_exceptions=True)

    async def _ring(self) -> None:
        while self._topics:
            topics, self._topics = sorted(self._topics), set()
            try:
                await self._engine.fetch_across(_SQL["ring"], topics, safe=True)
            except HoldfastError as error:
                _log.debug("workers were not notified: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(QUIET_SECONDS):
                    await self._closing.wait()


class PostgresWork(WorkStorage):
    """Finds the tenants that have work, and wakes workers by notifications.

    ::

        work = PostgresWork(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def tenants(self, kind: WorkKind, limit: int) -> list[str]:
        """Return tenants that have work of a kind, in order."""
        kinds = {
            "due": _SQL["due"],
            "working": _SQL["working"],
            "deliveries": _SQL["deliveries"],
            "uncopied": _SQL["uncopied"],
            "cleanup": _SQL["cleanup"],
        }
        rows = await self._engine.fetch_across(kinds[kind], limit, safe=True)
        return [row[0] for row in rows]

    async def scheduled(self, tenants: Sequence[str] | None, limit: int) -> ScheduledWork:
        """Return the tenants whose schedules are due, and the seconds until the next one is due."""
        rows = await self._engine.fetch_across(_SCHEDULES["scheduled"], limit, tenants, safe=True)
        due = [row["tenant"] for row in rows if row["tenant"] is not None]
        return ScheduledWork(due, rows[0]["seconds"])

    async def wait(self, timeout_seconds: float) -> None:
        """Return when a task may have become ready to run, or at the timeout."""
        with self._engine.singleton(Listener).bell(TOPIC) as bell, suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await bell.notice()

    async def survey(self, limit: int, tenants: Collection[str] | None) -> WorkSurvey:
        """Return up to ``limit`` tenants for each kind of work except deliveries."""
        rows = await self._engine.fetch_across(_SQL["survey"], limit, tenants, safe=True)
        found: dict[WorkKind, list[str]] = {}
        seconds = None
        for kind, tenant, wait in rows:
            if kind == "later":
                seconds = wait
            else:
                found.setdefault(kind, []).append(tenant)
        return WorkSurvey(found, seconds)

    @property
    def notified(self) -> bool:
        """Whether notifications arrive: the listener tests this by sending one to itself."""
        return self._engine.singleton(Listener).hears

    async def notices(self) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a task may have become ready to run."""
        with self._engine.singleton(Listener).bell(TOPIC) as bell:
            while True:
                yield
                await bell.notice()

    async def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a client may have sent a request to a task of the worker."""
        with self._engine.singleton(Listener).bell(requests_topic(worker)) as bell:
            while True:
                yield
                await bell.notice()
