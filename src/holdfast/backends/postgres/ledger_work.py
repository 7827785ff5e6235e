"""The doorbell of the queues on Postgres."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.listener import Listener
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_seconds
from holdfast.kernel.core.errors import HoldfastError
from holdfast.kernel.storage.ledger_work import WorkKind, WorkSignal

_SQL = load("ledger_work")
_log = logging.getLogger("holdfast.postgres")
TOPIC = "work"
QUIET_SECONDS = 0.02
"""How long a ring speaks for those that come after it."""


class Doorbell:
    """Tells workers everywhere of new work, after the fact and once for many.

    A notice inside of the submitting transaction would make all submits wait for each other, since
    the database lets one transaction with notices commit at a time. ::

        engine.part(Doorbell).ring()
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine
        self._again = False
        self._ringing: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Ring soon; while it rings, one more ring is enough for whoever comes."""
        self._again = True
        if self._ringing is None or self._ringing.done():
            self._ringing = asyncio.create_task(self._ring())

    async def aclose(self) -> None:
        """Let go; workers look now and then anyway."""
        if self._ringing is not None:
            self._ringing.cancel()
            await asyncio.gather(self._ringing, return_exceptions=True)

    async def _ring(self) -> None:
        while self._again:
            self._again = False
            try:
                await self._engine.fetch(_SQL["ring"], TOPIC, safe=True)
            except HoldfastError as error:
                _log.debug("workers were not told of new work: %s", error)
            await asyncio.sleep(QUIET_SECONDS)


class PostgresWork(WorkSignal):
    """``WorkSignal`` by notices and by looking.

    ::

        work = PostgresWork(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def tenants(self, kind: WorkKind = "due", *, limit: int = 100) -> list[str]:
        """The tenants that have work of a kind, in order."""
        kinds = {
            "due": _SQL["due"],
            "working": _SQL["working"],
            "deliveries": _SQL["deliveries"],
            "uncopied": _SQL["uncopied"],
            "cleanup": _SQL["cleanup"],
        }
        rows = await self._engine.fetch(kinds[kind], check_count("limit", limit), safe=True)
        return [row[0] for row in rows]

    async def wait(self, *, timeout_seconds: float) -> None:
        """Return when a task may have become due."""
        check_seconds("timeout_seconds", timeout_seconds)
        with self._engine.part(Listener).bell(TOPIC) as bell, suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await bell.wait(found=False)
